#include "framework/optimiser.h"

#include <utility>

#include "framework/graph.h"

namespace antichain {
namespace {

class OneByOne : public Update {
 public:
  OneByOne(UpdateOne update, std::shared_ptr<const Optimiser> optimiser, std::vector<Trained> trained)
      : update_(update), optimiser_(std::move(optimiser)), trained_(std::move(trained)) {}

  void run(Context& context, const Rate& rate) const override {
    for (const Trained& parameter : trained_) update_(context, *optimiser_, rate, parameter);
  }

 private:
  const UpdateOne update_;
  const std::shared_ptr<const Optimiser> optimiser_;
  const std::vector<Trained> trained_;
};

}  // namespace

std::vector<std::string> slots_of(const Optimiser& optimiser, const ParamSpec& param) {
  if (!param.trained) return {};
  return optimiser.slots(param);
}

int64_t slot_bytes(const Optimiser& optimiser, const Node& node) {
  int64_t bytes = 0;
  for (size_t i = 0; i < node.signature.params.size(); ++i)
    bytes += int64_t(slots_of(optimiser, node.signature.params[i]).size()) * node.param(i).bytes();
  return bytes;
}

MakeUpdate one_by_one(UpdateOne update) {
  return [update](std::shared_ptr<const Optimiser> optimiser, const Context&, std::vector<Trained> trained) {
    return std::make_unique<OneByOne>(update, std::move(optimiser), std::move(trained));
  };
}

}  // namespace antichain
