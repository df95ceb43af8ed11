// Trainer and rollout worker build prompts each for themselves; the Coder must not see the difference.
#include "rollout_workers/prompt_builder.h"
#include "tests/support/catch.h"
#include "trainer/prompts.h"

namespace warpsmith {
namespace {

v1::Task TaskOf(const PromptParts& parts, v1::Skill skill) {
  v1::Task task;
  task.set_id("t");
  task.set_skill(skill);
  task.set_reference_source(parts.reference);
  task.set_previous_source(parts.previous);
  task.mutable_feedback()->set_finding(parts.finding);
  task.mutable_feedback()->set_evidence(parts.evidence);
  for (int advice = 1; advice < v1::Advice_ARRAYSIZE; ++advice) {
    if (AdviceText(static_cast<v1::Advice>(advice)) == parts.advice) {
      task.mutable_feedback()->set_advice(static_cast<v1::Advice>(advice));
    }
  }
  return task;
}

}  // namespace

TEST_CASE("trainer and worker give the same task the same token ids, and say so by the same digest") {
  for (const char* const style : {"datasets/prompts/small", "datasets/prompts/coder"}) {
    const PromptBuilder worker = PromptBuilder::Create("datasets/tokenizer/small", style).value();
    const Prompts trainer = Prompts::Load("datasets/tokenizer/small", style).value();
    CHECK(worker.sha256() == trainer.sha256());
    for (const PromptParts& parts :
         {PromptParts{"def f(x):\n    return x\n", "int run();\n", "several passes", "speedup 0.48, 3 passes",
                      "fuse passes"},
          PromptParts{"\tdef f(x):\r\n  return 'é\xF0\x9F\x98\x80'  \n\n", "// <|im_end|>\n#include <cmath>",
                      "wrong\nvalues ", " max error 2.15\nat 8 of 16\n", "fix formula"}}) {
      CHECK(worker.Build(TaskOf(parts, v1::SKILL_GENERATE), 10000).value() ==
            trainer.Generate(parts).value());
      CHECK(worker.Build(TaskOf(parts, v1::SKILL_OPTIMISE), 10000).value() ==
            trainer.Optimise(parts).value());
    }
  }
}

}  // namespace warpsmith
