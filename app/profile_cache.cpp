#include "app/profile_cache.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "framework/backend.h"
#include "framework/json.h"
#include "framework/random.h"
#include "framework/version.h"
#include "pipeline/profiler.h"

namespace antichain {
namespace {

namespace fs = std::filesystem;

// The place for what can be made again (freedesktop.org, "XDG Base Directory Specification").
std::string usual_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return fs::path(cache) / "antichain" / "profiles";
  if (const char* home = std::getenv("HOME"); home && *home)
    return fs::path(home) / ".cache" / "antichain" / "profiles";
  return "";
}

}  // namespace

ProfileSubject profile_subject(const Graph& lowered, const Context& context, int microbatches,
                               int ranks_at_once) {
  std::string program = fmt::format("{} {}", version(), revision());
  if (const char* graphs = std::getenv("ANTICHAIN_CUDA_GRAPHS"))
    program += fmt::format(", graphs {}", graphs);
  return {.model = lowered.model(),
          .graph_hash = lowered.hash(),
          .device = context.backend().description(),
          .program = std::move(program),
          .microbatch = lowered.microbatch(),
          .microbatches = profiled_microbatches(context.backend(), microbatches),
          .threads = context.threads(),
          .ranks_at_once = ranks_at_once};
}

ProfileCache::ProfileCache(const std::string& option, const Context& context)
    : folder_(option != "auto"                  ? option == "none" ? "" : option
              : context.backend().host_memory() ? ""
                                                : usual_folder()) {}

std::string ProfileCache::file(const ProfileSubject& s) const {
  const std::string all = fmt::format("{}\n{}\n{}\n{}\n{} {} {} {}", s.model, s.graph_hash, s.device,
                                      s.program, s.microbatch, s.microbatches, s.threads, s.ranks_at_once);
  return fs::path(folder_) / fmt::format("{}-{}-{:016x}.json", s.model, s.microbatch, hash_bytes(all));
}

std::optional<Profile> ProfileCache::find(const ProfileSubject& s) const {
  if (off() || !fs::exists(file(s))) return std::nullopt;
  Profile kept = profile_from_json(read_file(file(s)), file(s));
  const bool fits = kept.graph_hash == s.graph_hash && kept.device == s.device &&
                    kept.microbatch == s.microbatch && kept.threads == s.threads &&
                    kept.ranks_at_once == s.ranks_at_once;
  return fits ? std::optional(std::move(kept)) : std::nullopt;
}

void ProfileCache::keep(const ProfileSubject& s, const Profile& profile) const {
  if (off()) return;
  fs::create_directories(folder_);
  write_file(file(s), to_json(profile));
}

}  // namespace antichain
