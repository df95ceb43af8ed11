#include "reward_service/server/reception.h"

namespace warpsmith {

absl::StatusOr<std::shared_ptr<const Tenant>> Reception::Identify(const Credentials& credentials) const {
  absl::StatusOr<std::shared_ptr<const Tenant>> tenant = tenants_.Identify(credentials);
  if (!tenant.ok()) ledger_->metrics().CountError("", tenant.status());
  return tenant;
}

uint64_t Reception::Submit(std::shared_ptr<const Tenant> tenant, const v1::GradeRequest& request,
                           GradeDone done) const {
  auto counted = [this, name = tenant->name, done = std::move(done)](absl::StatusOr<v1::Grade> grade) {
    if (!grade.ok()) ledger_->metrics().CountError(name, grade.status());
    done(std::move(grade));
  };
  absl::StatusOr<PreparedRequest> prepared = PrepareRequest(request, options_.abilities);
  if (!prepared.ok()) {
    counted(prepared.status());
    return 0;
  }
  prepared->tenant = std::move(tenant);
  if (request.formula().empty()) {
    prepared->request.set_formula(options_.capabilities.default_formula());
  }
  return grader_->Submit(std::make_shared<const PreparedRequest>(*std::move(prepared)), std::move(counted));
}

}  // namespace warpsmith
