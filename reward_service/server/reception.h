// What every door does with a request, however it came: finds whose it is, checks it, hands it to the grader.
#ifndef WARPSMITH_REWARD_SERVICE_SERVER_RECEPTION_H_
#define WARPSMITH_REWARD_SERVICE_SERVER_RECEPTION_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "reward_service/grading/grader.h"
#include "reward_service/grading/ledger.h"
#include "reward_service/grading/prepared_request.h"
#include "reward_service/grading/tenants.h"
#include "warpsmith/v1/reward_service.pb.h"

namespace warpsmith {

struct ReceptionOptions {
  ServiceAbilities abilities;
  v1::Capabilities capabilities;
};

// Thread-safe. `grader` and `ledger`, which the grader's observer fills, must outlive this.
class Reception {
 public:
  Reception(ReceptionOptions options, Tenants tenants, Grader* grader, Ledger* ledger)
      : options_(std::move(options)), tenants_(std::move(tenants)), grader_(grader), ledger_(ledger) {}

  // UNAUTHENTICATED, saying what to send.
  absl::StatusOr<std::shared_ptr<const Tenant>> Identify(const Credentials& credentials) const;

  // As Grader::Submit, which it calls; to `done` also what PrepareRequest says of a request that it refuses.
  // Returns a ticket for Cancel(); 0 when `done` has been called.
  uint64_t Submit(std::shared_ptr<const Tenant> tenant, const v1::GradeRequest& request,
                  GradeDone done) const;
  void Cancel(uint64_t ticket) const { grader_->Cancel(ticket); }

  const v1::Capabilities& capabilities() const { return options_.capabilities; }
  const RecentGrades& recent() const { return ledger_->recent(); }
  Backlog backlog() const { return grader_->backlog(); }
  std::string MetricsText() const { return ledger_->metrics().Text(backlog()); }

 private:
  const ReceptionOptions options_;
  const Tenants tenants_;
  Grader* const grader_;
  Ledger* const ledger_;
};

}  // namespace warpsmith

#endif  // WARPSMITH_REWARD_SERVICE_SERVER_RECEPTION_H_
