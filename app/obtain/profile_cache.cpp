#include "app/obtain/profile_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "framework/backend.h"
#include "framework/cache_folder.h"
#include "framework/error.h"
#include "framework/json.h"
#include "framework/paths.h"
#include "framework/random.h"
#include "framework/version.h"
#include "pipeline/host/core_time.h"
#include "pipeline/host/launch.h"
#include "pipeline/measure/profiler.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

std::string usual_folder() {
  if (const char* folder = std::getenv("ANTICHAIN_PROFILE_CACHE"); folder && *folder) return folder;
  const std::string cache = user_cache_folder();
  return cache.empty() ? "none" : cache + "/profiles";
}

std::string folder_of(const std::string& option) {
  const std::string folder = option == "auto" ? usual_folder() : option;
  return folder == "none" ? "" : folder;
}

std::string engine_of(const Backend& device) {
  std::string all;
  for (const auto& [what, value] : device.chooses_by()) all += fmt::format("{} {}, ", what, value);
  return all;
}

int64_t all_slot_bytes(const Optimiser& optimiser, const Graph& graph) {
  int64_t bytes = 0;
  for (const Node& node : graph) bytes += slot_bytes(optimiser, node);
  return bytes;
}

double age_of(const fs::path& file) {
  std::error_code unknown;
  const auto age = fs::file_time_type::clock::now() - fs::last_write_time(file, unknown);
  return std::max(0.0, std::chrono::duration<double>(age).count());
}

bool fits(const Profile& kept, const ProfileSubject& s) {
  return kept.model == s.model && kept.graph_hash == s.graph_hash && kept.device == s.device &&
         kept.microbatch == s.microbatch && kept.threads == s.threads &&
         kept.ranks_at_once == s.ranks_at_once;
}

}  // namespace

ProfileSubject profile_subject(const Graph& lowered, const Optimiser& optimiser, const Context& context,
                               int microbatches, int ranks_at_once) {
  return {.model = lowered.model(),
          .graph_hash = lowered.hash(),
          .device = context.backend().description(),
          .engine = engine_of(context.backend()),
          .optimiser = fmt::format("{}, {} bytes", optimiser.name(), all_slot_bytes(optimiser, lowered)),
          .program = fmt::format("{} {}", version(), revision()),
          .microbatch = lowered.microbatch(),
          .microbatches = profiled_microbatches(context.backend(), microbatches),
          .threads = context.threads(),
          .ranks_at_once = ranks_at_once,
          .cores = available_cores(),
          .cores_of_host = available_cores_on_host()};
}

std::string age(double seconds) {
  constexpr double minute = 60, hour = 3600, day = 86400;
  if (seconds < minute) return fmt::format("{:.0f} s", seconds);
  if (seconds < hour) return fmt::format("{:.0f} min", seconds / minute);
  if (seconds < 2 * day) return fmt::format("{:.0f} h", seconds / hour);
  return fmt::format("{:.0f} days", seconds / day);
}

bool worth_keeping(double starved_share, double measured_for_s, double usual_s) {
  return starved_share <= doubtful_starved_share && measured_for_s >= usual_s;
}

ProfileCache::ProfileCache(const std::string& option) : folder_(folder_of(option)) {}

std::string ProfileCache::file(const ProfileSubject& s) const {
  const std::string all = fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{} {} {} {} {} {}", s.model, s.graph_hash,
                                      s.device, s.engine, s.optimiser, s.program, s.microbatch,
                                      s.microbatches, s.threads, s.ranks_at_once, s.cores, s.cores_of_host);
  return fs::path(folder_) / fmt::format("{}-{}-{:016x}.json", s.model, s.microbatch, hash_bytes(all));
}

std::optional<KeptProfile> ProfileCache::find(const ProfileSubject& s) const {
  if (off() || !is_plain_file(file(s))) return std::nullopt;
  KeptProfile kept{profile_from_json(read_file(file(s)), file(s)), age_of(file(s))};
  if (!fits(kept.profile, s))
    throw Error(file(s) + " is the profile of another network or machine than its name says");
  return kept;
}

void ProfileCache::keep(const ProfileSubject& s, const Profile& profile) const {
  if (off()) return;
  make_folders(folder_);
  write_file(file(s), to_json(profile));
}

}  // namespace antichain
