// The page of rewards: what waits, how verdicts are shared out, the latest grades, and one of them whole.
// Text of tasks and candidates only ever becomes text nodes.

const REFRESH_MS = 2000;
const LIST_MAX = 50;
const UNSCORED = ['UNSCORABLE', 'INVALID_TASK'];

const byId = (id) => document.getElementById(id);
let shown = null; // sequence of the grade that is shown
let oldest = null; // sequence of the last line of the list

// An element with attributes and children; strings become text.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

const verdictText = (verdict) => verdict.replace('VERDICT_', '');

function verdictClass(verdict) {
  const text = verdictText(verdict);
  if (UNSCORED.includes(text)) return 'unscored';
  return text === 'CORRECT' ? 'correct' : 'refused';
}

function number(value, digits = 2) {
  return typeof value === 'number' && Number.isFinite(value) ? value.toFixed(digits) : '';
}

function seconds(value) {
  if (!(value > 0)) return '';
  if (value < 1e-3) return `${(value * 1e6).toFixed(1)} µs`;
  return value < 1 ? `${(value * 1e3).toFixed(2)} ms` : `${value.toFixed(2)} s`;
}

class Refused extends Error {}

async function load(path) {
  const token = sessionStorage.getItem('token');
  const response = await fetch(path, { headers: token ? { authorization: `Bearer ${token}` } : {} });
  const body = await response.json();
  byId('sign-in').hidden = response.status !== 401;
  if (!response.ok) throw new Refused(body.error.message);
  return body;
}

function say(text, isLost = false) {
  byId('status').textContent = text;
  byId('status').classList.toggle('lost', isLost);
}

function showStatus(status) {
  say(`${status.tenant}: ${status.numRequests} requests wait, ${status.numToCompile} of them to be compiled, ` +
    `${status.numToJudge} for a lane`);
  const total = Object.values(status.verdicts).reduce((sum, count) => sum + count, 0);
  const rows = Object.entries(status.verdicts).sort((a, b) => b[1] - a[1]);
  byId('verdicts').replaceChildren(...rows.map(([verdict, count]) => element('li', {},
    element('span', { class: verdictClass(verdict) }, verdictText(verdict)), ` ${count} `,
    element('meter', { min: 0, max: total, value: count }, `${count} of ${total}`))));
  addVerdictChoices(rows.map(([verdict]) => verdict));
}

function addVerdictChoices(verdicts) {
  const select = byId('verdict');
  const known = new Set([...select.options].map((option) => option.value));
  for (const verdict of verdicts.filter((name) => !known.has(name))) {
    select.append(element('option', { value: verdict }, verdictText(verdict)));
  }
}

function filterQuery(before = null) {
  const query = new URLSearchParams({ num: LIST_MAX });
  for (const name of ['verdict', 'reward_min', 'reward_max', 'hack_family']) {
    if (byId(name).value) query.set(name, byId(name).value);
  }
  if (before !== null) query.set('before', before);
  return `/v1/recent?${query}`;
}

function listRow(line) {
  const row = element('tr', { class: 'choice', tabindex: 0, 'data-sequence': line.sequence },
    element('td', {}, line.time.slice(11, 19)),
    element('td', {}, line.taskId || line.requestId),
    element('td', { class: verdictClass(line.verdict), title: line.verdictReason },
      verdictText(line.verdict) + (line.hackFamily ? ` (${line.hackFamily})` : '')),
    element('td', { class: 'number' }, number(line.speedup > 0 ? line.speedup : null)),
    element('td', { class: 'number' }, number(line.reward, 3)),
    element('td', { class: 'number' }, line.cached ? 'cached' : number(line.totalSeconds)));
  row.classList.toggle('chosen', line.sequence === shown);
  row.addEventListener('click', () => showGrade(line.sequence));
  row.addEventListener('keydown', (event) => { if (event.key === 'Enter') showGrade(line.sequence); });
  return row;
}

async function showList() {
  const { grades } = await load(filterQuery());
  byId('grades').replaceChildren(...grades.map(listRow));
  afterList(grades);
  byId('empty').hidden = grades.length > 0;
}

async function showOlder() {
  const { grades } = await load(filterQuery(oldest));
  byId('follow').checked = false; // else the next refresh would take these away
  byId('grades').append(...grades.map(listRow));
  afterList(grades);
}

function afterList(grades) {
  oldest = grades.length > 0 ? grades[grades.length - 1].sequence : oldest;
  byId('older').hidden = grades.length < LIST_MAX;
}

function table(caption, rows) {
  const filled = rows.filter(([, value]) => value !== '' && value !== undefined && value !== null);
  if (filled.length === 0) return null;
  return element('section', {}, element('h2', {}, caption), element('table', {}, element('tbody', {},
    ...filled.map(([name, value, reason]) => element('tr', {}, element('th', {}, name),
      element('td', {}, String(value)), reason === undefined ? null : element('td', { class: 'reason' }, reason))))));
}

// Every field of a message that is a number, a text or a truth, by its own name.
function fields(message) {
  return Object.entries(message ?? {}).filter(([, value]) => typeof value !== 'object')
    .map(([name, value]) => [name, typeof value === 'number' && !Number.isInteger(value) ? value.toPrecision(5) : value]);
}

function source(caption, text) {
  if (!text) return null;
  return element('section', {}, element('h2', {}, caption), element('pre', {}, text));
}

function rewardRows(reward) {
  return [['value', number(reward?.value, 4) || 'none: leave the sample out'], ['formula', reward?.formula],
    ...(reward?.terms ?? []).map((term) => [term.name, number(term.value, 4)])];
}

function timingRows(timing) {
  if (!(timing?.speedup > 0)) return [];
  const interval = `${number(timing.speedupLow, 3)} to ${number(timing.speedupHigh, 3)}`;
  return [['speed-up', number(timing.speedup, 3), `95 %: ${interval}`],
    ...['reference', 'candidate'].map((side) => [side, `${number(timing[side]?.medianUs)} µs`,
      `median of ${timing[side]?.numCalls} calls in ${timing[side]?.numInstances} processes, ` +
      `standard deviation ${number(timing[side]?.standardDeviationUs)} µs`]),
    ...fields(timing).filter(([name]) => !name.startsWith('speedup'))];
}

function clockRows(clocks) {
  return fields(clocks).concat((clocks?.throttleReasons ?? []).map((reason) => ['throttled', reason]));
}

function rubricReason(row) {
  const measured = [row.condition, row.reason].filter(Boolean).join(': ');
  return row.llmScore ? `${measured} (${row.tableScore}); LLM judge (${row.llmScore}): ${row.llmReason ?? ''}` : measured;
}

function rubricRows(rubric) {
  return ['antiHacking', 'engineering', 'operatorCoverage', 'skillCompliance'].filter((name) => rubric?.[name])
    .map((name) => [name, rubric[name].score, rubricReason(rubric[name])])
    .concat(fields(rubric));
}

async function showGrade(sequence) {
  const { line, request, grade } = await load(`/v1/recent/${sequence}`);
  shown = sequence;
  history.replaceState(null, '', `#${sequence}`); // a link to this grade
  for (const row of document.querySelectorAll('#grades tr')) {
    row.classList.toggle('chosen', Number(row.dataset.sequence) === sequence);
  }
  const parts = [
    element('h2', { class: verdictClass(grade.verdict) }, verdictText(grade.verdict) + (grade.hackFamily ? ` (${grade.hackFamily})` : '')),
    element('p', {}, grade.verdictReason),
    table('Reward', rewardRows(grade.reward)),
    table('Credit', fields(grade.credit)),
    table('Timing', timingRows(grade.timing)),
    table('Clocks', clockRows(grade.timing?.clocks)),
    table('Rubric', rubricRows(grade.rubric)),
    table('Comparison', fields(grade.correctness)),
    table('Profile', fields(grade.profile)),
    table('Feedback', fields(grade.feedback)),
    source('Compiler', grade.compile?.diagnostics),
    element('div', { class: 'sources' }, source('Candidate', grade.source), source('Reference', request.task?.referenceSource)),
    table('Cost', fields(grade.cost).map(([name, value]) => [name.replace('Seconds', ''), seconds(Number(value))])),
    table('Request', [['id', line.requestId], ['time', line.time], ['language', request.candidate?.language]]),
    table('Environment', fields(grade.environment)),
  ];
  byId('grade').replaceChildren(...parts.filter((part) => part !== null));
  byId('grade').hidden = false;
}

async function refresh() {
  try {
    showStatus(await load('/v1/status'));
    if (byId('follow').checked) await showList();
  } catch (error) {
    say(error instanceof Refused ? error.message : 'the service does not answer', true);
  }
}

async function refreshForever() {
  await refresh();
  setTimeout(refreshForever, REFRESH_MS);
}

byId('filter').addEventListener('input', () => showList().catch((error) => say(error.message, true)));
byId('filter').addEventListener('submit', (event) => event.preventDefault());
byId('older').addEventListener('click', () => showOlder().catch((error) => say(error.message, true)));
byId('sign-in').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('token', byId('token').value.trim());
  byId('token').value = '';
  refresh();
});
refreshForever();
if (/^#\d+$/.test(location.hash)) {
  showGrade(Number(location.hash.slice(1))).catch((error) => say(error.message, true));
}
