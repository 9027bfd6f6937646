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
#include <utility>

#include "app/cli/number_text.h"
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

std::vector<int64_t MemoryShares::*> fields_of_shares() {
  return {&MemoryShares::weights, &MemoryShares::versions, &MemoryShares::gradients, &MemoryShares::optimiser,
          &MemoryShares::kept,    &MemoryShares::working,  &MemoryShares::messages,  &MemoryShares::scratch};
}

std::vector<int64_t MemoryNeed::*> fields_beside_shares() {
  return {&MemoryNeed::evaluation, &MemoryNeed::images, &MemoryNeed::code, &MemoryNeed::copy};
}

std::string to_text(const MemoryNeed& need) {
  std::string text;
  for (const auto field : fields_of_shares()) text += fmt::format("{} ", need.step.*field);
  for (const auto field : fields_beside_shares()) text += fmt::format("{} ", need.*field);
  return text;
}

std::istream& operator>>(std::istream& in, MemoryNeed& need) {
  for (const auto field : fields_of_shares()) in >> need.step.*field;
  for (const auto field : fields_beside_shares()) in >> need.*field;
  return in;
}

void add(MemoryNeed& sum, const MemoryNeed& need) {
  for (const auto field : fields_of_shares()) sum.step.*field += need.step.*field;
  for (const auto field : fields_beside_shares()) sum.*field += need.*field;
}

std::string to_text(const RankNeed& r) {
  return fmt::format("{} {} {} {} {}{} {}", r.host, r.process, r.available, r.address_space, to_text(r.need),
                     r.device.free_bytes, r.device.name);
}

RankNeed rank_need(const std::string& text) {
  RankNeed r;
  std::istringstream in(text);
  in >> r.host >> r.process >> r.available >> r.address_space >> r.need >> r.device.free_bytes >>
      r.device.name;
  return r;
}

// It is plain, because an Error's text is made printable.
std::string table_of(const std::vector<RankNeed>& ranks) {
  std::vector<MemoryRow> rows;
  for (const RankNeed& rank : ranks)
    rows.push_back({.ranks = std::to_string(rows.size()),
                    .host = rank.host,
                    .need = rank.need,
                    .predicted_bytes = rank.need.total()});
  return memory_table(rows, Table::Look::plain);
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
               fmt::format("use a smaller --batch, {}\n\n{}", advice, table_of(ranks)),
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

MemoryRecord::MemoryRecord() {
  return_free_memory();
  before_ = resident_bytes();
}

void MemoryRecord::begin(const MemoryNeed& need, const DeviceMemory& device) {
  if (device.name.empty()) need_ = need;
  estimated_ = device.name.empty() ? need.total() : need.beside_device();
  return_free_memory();  // of measuring and planning
  forget_peak();
}

std::vector<MemoryRow> MemoryRecord::compare(Rank& rank) const {
  const std::string mine = fmt::format("{}:{} {} {} {}", rank.job.host(), ::getpid(), estimated_,
                                       peak_resident_bytes() - before_, to_text(need_));
  std::vector<MemoryRow> processes;
  std::string process, before;
  int r = 0;
  for (const std::string& text : rank.job.gather(mine)) {
    MemoryRow its;
    its.ranks = std::to_string(r++);
    std::istringstream in(text);
    in >> process >> its.predicted_bytes >> its.measured_bytes >> its.need;
    its.host = process.substr(0, process.rfind(':'));
    if (process != std::exchange(before, process)) {
      processes.push_back(its);
      continue;
    }
    MemoryRow& all = processes.back();  // ranks that are threads
    all.ranks = all.ranks.substr(0, all.ranks.find('-')) + "-" + its.ranks;
    all.predicted_bytes += its.predicted_bytes;
    all.measured_bytes = std::max(all.measured_bytes, its.measured_bytes);
    add(all.need, its.need);
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

bool has_room_for(Job& job, const MemoryNeed& next, const MemoryNeed& now) {
  const MemoryNeed growth{.step = {.weights = std::max<int64_t>(0, next.total() - now.total())}};
  try {
    check_available_memory(job, MemoryOf::plan, growth);
    return true;
  } catch (const Error&) {  // on every rank
    return false;
  }
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
