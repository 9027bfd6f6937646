#include "pipeline/train/state_hash.h"

#include <fmt/format.h>

#include <sstream>

#include "framework/error.h"
#include "framework/random.h"

namespace antichain {

StateHash state_hash(const RankModel& model, Job& job) {
  std::string lines;
  model.for_each_value([&](const std::string& name, const Tensor& tensor) {
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.raw()), size_t(tensor.bytes()));
    lines += fmt::format("{} {:016x}\n", name, hash_bytes(bytes));
  });
  StateHash state;
  for (const std::string& of_rank : job.gather(lines)) {
    std::istringstream in(of_rank);
    for (std::string name, hash; in >> name >> hash;) {
      const auto [known, added] = state.tensors.emplace(name, hash);
      ANTICHAIN_CHECK(added || known->second == hash, "replicas hold the same bits of " + name);
    }
  }
  std::string all;
  for (const auto& [name, hash] : state.tensors) all += name + hash;
  if (!all.empty()) state.all = fmt::format("{:016x}", hash_bytes(all));
  return state;
}

}  // namespace antichain
