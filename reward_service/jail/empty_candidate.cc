// A candidate that does nothing: what the path to a candidate costs.
struct DLTensor;

extern "C" int run(const DLTensor* const*, const DLTensor* const*, DLTensor* const*) { return 0; }
