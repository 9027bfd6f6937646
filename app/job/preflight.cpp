#include "app/job/preflight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "app/cli/number_text.h"
#include "app/cli/table.h"
#include "framework/backend.h"
#include "framework/error.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/host/host_memory.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

using Settings = std::map<std::string, std::string>;  // option to value

Settings parse_settings(const std::string& text) {
  Settings settings;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    settings[line.substr(0, line.find(' '))] =
        line.find(' ') == std::string::npos ? "" : line.substr(line.find(' ') + 1);
  return settings;
}

std::string value_of(const Settings& settings, const std::string& option) {
  const auto it = settings.find(option);
  return it == settings.end() ? fmt::format("without --{}", option)
                              : fmt::format("with --{} {}", option, it->second);
}

// Returns "rank 2 was started with --lr 0.2, the others with --lr 0.3", or "" where all agree.
std::string odd_ranks(const std::vector<Settings>& ranks) {
  std::set<std::string> options;
  for (const Settings& settings : ranks)
    for (const auto& [option, value] : settings) options.insert(option);
  for (const std::string& option : options) {
    std::vector<std::string> values;
    for (const Settings& settings : ranks) values.push_back(value_of(settings, option));
    const std::string sentence = describe_odd(values, "was started", "were started");
    if (!sentence.empty()) return sentence;
  }
  return "";
}

struct RankNeed {
  std::string host, process;
  int64_t available = 0, address_space = 0;
  MemoryNeed need;
  DeviceMemory device;
  int64_t on_host() const { return device.name.empty() ? need.total() : need.beside_device(); }
};

std::string to_text(const RankNeed& r) {
  const MemoryNeed& n = r.need;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", r.host, r.process, r.available,
                     r.address_space, n.weights, n.activations, n.evaluation, n.scratch, n.images, n.code,
                     n.copy, r.device.free_bytes, r.device.name);
}

RankNeed rank_need(const std::string& text) {
  RankNeed r;
  std::istringstream in(text);
  in >> r.host >> r.process >> r.available >> r.address_space >> r.need.weights >> r.need.activations >>
      r.need.evaluation >> r.need.scratch >> r.need.images >> r.need.code >> r.need.copy >>
      r.device.free_bytes >> r.device.name;
  return r;
}

std::string table_of(const std::vector<RankNeed>& ranks, MemoryOf subject) {
  Table table({{subject == MemoryOf::plan ? "stage" : "rank"},
               {"host", Table::Align::left},
               {"weights\nMiB"},
               {"activations\nMiB"},
               {"evaluation\nMiB"},
               {"scratch\nMiB"},
               {"images\nMiB"},
               {"engine\nMiB"},
               {"all\nMiB"}});
  for (size_t r = 0; r < ranks.size(); ++r) {
    const MemoryNeed& n = ranks[r].need;
    table.add({std::to_string(r), ranks[r].host, mebibytes(n.weights), mebibytes(n.activations),
               mebibytes(n.evaluation), mebibytes(n.scratch), mebibytes(n.images), mebibytes(n.code),
               mebibytes(n.total())});
  }
  return table.str(0, Table::Look::plain);  // plain, because an Error's text is made printable
}

// Ranks of one host share its memory, and ranks that are threads share the limits of their process. Ranks in
// control groups of their own may have less.
struct SharedMemory {
  int64_t needed = 0, left = std::numeric_limits<int64_t>::max();
  void add(int64_t bytes, int64_t available) {
    needed += bytes;
    left = std::min(left, available);
  }
};

// These are in the order of MemoryOf.
constexpr const char* subjects[] = {"measuring this network", "this plan", "this network"};
constexpr const char* advices[] = {
    "more --microbatches, fewer ranks on a host, or give the --profile of a machine that has more",
    "more --microbatches, more hosts, or plan with --memory-bytes", "or fewer ranks on a host"};
constexpr const char* address_advices[] = {"more --microbatches, or a larger ulimit -v",
                                           "more --microbatches, or a larger ulimit -v",
                                           "or a larger ulimit -v"};

Error too_much(MemoryOf subject, const std::string& where, const SharedMemory& share,
               const std::string& advice, const std::vector<RankNeed>& ranks) {
  return Error(fmt::format("{} needs {} MiB {} {} MiB left", subjects[size_t(subject)],
                           mebibytes(share.needed), where, mebibytes(share.left)),
               fmt::format("use a smaller --batch, {}\n\n{}", advice, table_of(ranks, subject)),
               ExitCode::out_of_memory);
}

const char* device_advice(MemoryOf subject) {
  switch (subject) {
    case MemoryOf::plan:
      return "more ranks with a GPU each, or plan with --memory-bytes";
    case MemoryOf::profiling:
      return "fewer ranks on a GPU, or give the --profile of a larger one";
    default:
      return "or fewer ranks on a GPU";
  }
}

void refuse_too_much(const std::vector<RankNeed>& ranks, MemoryOf subject) {
  std::map<std::string, SharedMemory> devices, hosts, processes;
  for (const RankNeed& r : ranks) {
    if (!r.device.name.empty())
      devices[fmt::format("GPU {} of {}", r.device.name, r.host)].add(r.need.on_device(),
                                                                      r.device.free_bytes);
    hosts[r.host].add(r.on_host(), r.available);
    processes[r.host + ':' + r.process].add(r.on_host(), r.address_space);
  }
  const char* advice = advices[size_t(subject)];
  for (const auto& [device, share] : devices)
    if (share.needed > share.left)
      throw too_much(subject, fmt::format("on {}, which has", device), share, device_advice(subject), ranks);
  for (const auto& [host, share] : hosts)
    if (share.needed > share.left)
      throw too_much(subject, fmt::format("on {}, which has", host), share, advice, ranks);
  for (const auto& [process, share] : processes)
    if (share.needed > share.left)
      throw too_much(subject, "of address space in one process, which has", share,
                     address_advices[size_t(subject)], ranks);
}

}  // namespace

MemoryRecord::MemoryRecord() : before_(resident_bytes()) {}

void MemoryRecord::begin(int64_t estimated_bytes) {
  estimated_ = estimated_bytes;
  return_free_memory();  // of measuring and planning
  forget_peak();
}

std::vector<ProcessMemory> MemoryRecord::compare(Rank& rank) const {
  const std::string mine =
      fmt::format("{}:{} {} {}", rank.job.host(), ::getpid(), estimated_, peak_resident_bytes() - before_);
  std::vector<ProcessMemory> processes;
  for (const std::string& text : rank.job.gather(mine)) {
    ProcessMemory its;
    std::istringstream(text) >> its.process >> its.estimated_bytes >> its.measured_bytes;
    if (!processes.empty() && processes.back().process == its.process) {  // ranks that are threads
      processes.back().estimated_bytes += its.estimated_bytes;
      processes.back().measured_bytes = std::max(processes.back().measured_bytes, its.measured_bytes);
    } else {
      processes.push_back(its);
    }
  }
  return processes;
}

std::string settings_of(const CLI::App& command) {
  std::string text;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group() == "Output" || option->count() == 0 || option->get_lnames().empty()) continue;
    text += fmt::format("{} {}\n", option->get_lnames().front(), fmt::join(option->reduced_results(), " "));
  }
  return text;
}

void check_same_settings(Rank& rank, const std::string& settings) {
  std::vector<Settings> ranks;
  for (const std::string& text : rank.job.gather(settings)) ranks.push_back(parse_settings(text));
  on_rank_zero(rank.job, [&]() -> std::string {
    if (const std::string odd = odd_ranks(ranks); !odd.empty())
      throw Error(odd, "start every rank with the same options", ExitCode::usage);
    return "";
  });
}

DeviceMemory device_memory(const Context& context) {
  const DeviceStreams* device = device_streams(context.backend().name());
  if (!device || !device->free_bytes) return {};
  return {device->device(context), device->free_bytes(context)};
}

void check_available_memory(Job& job, MemoryOf subject, const MemoryNeed& need, const DeviceMemory& device) {
  const RankNeed mine{
      job.host(), std::to_string(::getpid()), available_memory_bytes(), address_space_bytes(), need, device};
  std::vector<RankNeed> ranks;
  for (const std::string& text : job.gather(to_text(mine))) ranks.push_back(rank_need(text));
  on_rank_zero(job, [&]() -> std::string {
    refuse_too_much(ranks, subject);
    return "";
  });
}

}  // namespace antichain
