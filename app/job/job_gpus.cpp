#include "app/job/job_gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "app/cli/number_text.h"
#include "framework/backend.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/host/launch.h"

namespace antichain {
namespace {

constexpr int enough_cores = 3;  // for the computing thread, the watchdog's, and those of CUDA and NCCL

// Groups ranks by the GPU that they use.
std::map<std::pair<std::string, std::string>, std::vector<size_t>> by_gpu(const std::vector<RankGpu>& ranks) {
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> users;
  for (size_t r = 0; r < ranks.size(); ++r) users[{ranks[r].host, ranks[r].gpu}].push_back(r);
  return users;
}

std::string shared_ones(const std::vector<RankGpu>& ranks) {
  for (const auto& [place, users] : by_gpu(ranks)) {
    if (users.size() == 1) continue;
    const int visible = ranks[users[0]].visible;
    return fmt::format(
        "ranks {} on {} share GPU {}, {}: results are the same, speed is not (CUDA_VISIBLE_DEVICES and the "
        "batch system decide what a rank sees)",
        fmt::join(users, ", "), place.first, place.second,
        visible == 1 ? "the only one that they see" : fmt::format("one of {} that they see", visible));
  }
  return "";
}

// Warns where each rank sees only its own GPU.
std::string parted_ones(const std::vector<RankGpu>& ranks) {
  std::map<std::string, size_t> first_of;
  for (size_t r = 0; r < ranks.size(); ++r) {
    const auto [first, is_new] = first_of.try_emplace(ranks[r].host, r);
    const RankGpu& other = ranks[first->second];
    if (is_new || ranks[r].visible > 1 || other.visible > 1 || ranks[r].gpu == other.gpu) continue;
    return fmt::format(
        "ranks {} and {} on {} see only their own GPU each, so nothing goes from one to the other but "
        "through "
        "host memory: let each rank see all GPUs of its node (Slurm: no --gpus-per-task for srun, no "
        "--gpu-bind)",
        first->second, r, ranks[r].host);
  }
  return "";
}

std::string bound_ones(const std::vector<RankGpu>& ranks) {
  for (size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].cores < std::min(enough_cores, ranks[r].of_cores))
      return fmt::format(
          "rank {} on {} may run on {} only, but a GPU's rank has threads beside the one that computes: "
          "start "
          "with mpirun --bind-to none, or --map-by slot:PE=4",
          r, ranks[r].host, counted(ranks[r].cores, "core"));
  return "";
}

}  // namespace

std::vector<RankGpu> job_gpus(const Rank& rank) {
  const DeviceStreams* device = device_streams(rank.context.backend().name());
  std::string mine;
  if (device && device->visible)
    mine = fmt::format("{} {} {} {} {}", rank.job.host(), device->device(rank.context), device->visible(),
                       available_cores(), available_cores_on_host());
  std::vector<RankGpu> all;
  for (const std::string& text : rank.job.gather(mine)) {
    RankGpu its;
    std::istringstream in(text);
    if (in >> its.host >> its.gpu >> its.visible >> its.cores >> its.of_cores) all.push_back(its);
  }
  return all;
}

std::string describe(const std::vector<RankGpu>& ranks) {
  std::vector<int> visible;
  for (const RankGpu& rank : ranks)
    if (visible.empty() || visible.back() != rank.visible) visible.push_back(rank.visible);
  const bool share = by_gpu(ranks).size() < ranks.size();
  const char* use = share               ? ", which share some"
                    : ranks.size() == 1 ? ""
                                        : ", each of which has one of its own";
  return fmt::format("{} visible to {}{}", fmt::join(visible, ", "),
                     ranks.size() == 1 ? "the rank" : "each rank", use);
}

std::vector<std::string> warnings_of(const std::vector<RankGpu>& ranks) {
  std::vector<std::string> all{shared_ones(ranks), parted_ones(ranks), bound_ones(ranks)};
  std::erase(all, "");
  return all;
}

}  // namespace antichain
