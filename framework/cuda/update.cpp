#include "framework/cuda/update.h"

#include <algorithm>
#include <utility>

#include "framework/cuda/list_on_device.h"
#include "framework/error.h"
#include "framework/weight_decay.h"

namespace antichain::cuda {
namespace {

constexpr int64_t longest = 16384;  // numbers of a part
constexpr size_t alignment = 16;    // bytes

void check(const Trained& t) {
  std::vector<Tensor> all = t.slots;
  all.push_back(t.w), all.push_back(t.dw);
  for (const Tensor& tensor : all)
    ANTICHAIN_CHECK(tensor.dtype() == DType::f32 && tensor.elements() == t.w.elements() &&
                        reinterpret_cast<uintptr_t>(tensor.raw()) % alignment == 0,
                    "a parameter, its gradient and its slots are float32 of one size, each at a multiple of "
                    "16 bytes");
  ANTICHAIN_CHECK(t.slots.size() <= most_slots, "a part has room for so many slots");
  ANTICHAIN_CHECK(!t.rounded || t.rounded.dtype() == DType::bf16, "what is rounded is rounded to bf16");
}

// Keeps in the device's memory the parts of the parameters, and keeps alive the tensors that they belong to.
class InOneLaunch : public Update {
 public:
  InOneLaunch(UpdateParts update, std::shared_ptr<const Optimiser> optimiser, const Context& context,
              std::vector<Trained> trained)
      : update_(update), optimiser_(std::move(optimiser)), trained_(std::move(trained)) {
    const std::vector<Part> parts = parts_of(trained_);
    parts_ = list_on_device(context, parts);
    count_ = int64_t(parts.size());
  }

  void run(Context& context, const Rate& rate) const override {
    if (count_ > 0) update_(stream_of(context), *optimiser_, rate, parts_.data<Part>(), count_);
  }

 private:
  const UpdateParts update_;
  const std::shared_ptr<const Optimiser> optimiser_;
  const std::vector<Trained> trained_;
  Tensor parts_;
  int64_t count_ = 0;
};

}  // namespace

std::vector<Part> parts_of(const std::vector<Trained>& trained) {
  std::vector<Part> parts;
  for (const Trained& t : trained) {
    check(t);
    for (int64_t begin = 0; begin < t.w.elements(); begin += longest) {
      Part part{.w = t.w.data<float>() + begin,
                .dw = t.dw.data<float>() + begin,
                .rounded = t.rounded ? t.rounded.data<Bf16>() + begin : nullptr,
                .count = uint32_t(std::min(longest, t.w.elements() - begin)),
                .matrix = is_matrix(t.w.shape())};
      for (size_t s = 0; s < t.slots.size(); ++s) part.slots[s] = t.slots[s].data<float>() + begin;
      parts.push_back(part);
    }
  }
  return parts;
}

MakeUpdate in_one_launch(UpdateParts update) {
  return [update](std::shared_ptr<const Optimiser> optimiser, const Context& context,
                  std::vector<Trained> trained) {
    return std::make_unique<InOneLaunch>(update, std::move(optimiser), context, std::move(trained));
  };
}

std::map<std::string, MakeUpdate, std::less<>> updates() {
  return {{"adamw", in_one_launch(adamw)},
          {"ema", in_one_launch(ema)},
          {"muon", make_muon},
          {"sgd", in_one_launch(sgd)}};
}

}  // namespace antichain::cuda
