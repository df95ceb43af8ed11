#include "tests/support/skip_where.h"

namespace warpsmith {
namespace {

Lack the_lack = nullptr;

}  // namespace

SkipWhere::SkipWhere(Lack lack) { the_lack = lack; }

std::string ReasonToSkip() { return the_lack == nullptr ? std::string() : the_lack(); }

}  // namespace warpsmith
