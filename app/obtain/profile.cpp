#include "app/obtain/profile.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "app/cli/number_text.h"
#include "app/cli/progress_bar.h"
#include "app/job/preflight.h"
#include "app/obtain/profile_cache.h"
#include "data/loader.h"
#include "framework/backend.h"
#include "framework/error.h"
#include "framework/say.h"
#include "partition/profile/read_profile.h"
#include "pipeline/host/core_time.h"
#include "pipeline/measure/link_probe.h"
#include "pipeline/measure/profiler.h"
#include "pipeline/transport/agree.h"

namespace antichain {
namespace {

void check_subject(const Profile& profile, const std::string& file, const Graph& lowered) {
  if (profile.ids_are_names) {
    throw Error(
        file +
            " has the prices of a network, but not its operators: it can be planned and simulated, not run",
        "use a profile of antichain profile --json");
  }
  if (profile.graph_hash == lowered.hash()) return;
  const NodeId labels = lowered.find(Loader::labels_input);
  const bool soft = labels >= 0 && lowered[labels].output().shape.rank() == 2 &&
                    lowered[labels].output().dtype != DType::i32;
  throw Error(
      fmt::format(
          "{} is the profile of {} in {} and micro-batches of {} on {} (graph {}), but this run is {} "
          "in {} and micro-batches of {} (graph {})",
          file, profile.model, name_of(profile.precision), profile.microbatch, profile.device,
          profile.graph_hash, lowered.model(), name_of(lowered.precision()), lowered.microbatch(),
          lowered.hash()),
      soft ? "profile this network on this machine, with --soft-labels"
           : "profile this network on this machine");
}

// Returns the kept profile's text, or "", on all ranks.
std::string kept_profile(const PlanningOptions& planning, const NetworkOptions& network, const Graph& lowered,
                         const Optimiser& optimiser, const Context& context, Job& job) {
  return on_rank_zero(job, [&] {
    std::optional<KeptProfile> kept;
    try {
      kept = ProfileCache(planning.profile_cache)
                 .find(profile_subject(lowered, optimiser, context, network.microbatches, job.local_size()));
    } catch (const std::exception& error) {
      note(fmt::format("a kept profile is of no use, so it is measured anew: {}", error.what()));
    }
    if (!kept) return std::string();
    fmt::print("Profile: kept from a run {} ago (--profile-cache none measures anew)\n\n", age(kept->age_s));
    std::fflush(stdout);
    return to_json(kept->profile);
  });
}

std::string words_for(const std::string& way) { return way.empty() ? "tensors were in host memory" : way; }

// The cut, and NCCL's order of messages, depend on the link.
void note_another_way(const Profile& profile, const PlanningOptions& planning, const Rank& rank,
                      const ChosenTransport& tensors) {
  const bool given =
      (planning.link_bytes_per_s >= 0 && planning.link_latency_s >= 0) || !planning.cluster_file.empty();
  if (!rank.prints() || given || rank.job.size() == 1 || profile.link.bytes_per_s <= 0) return;
  if (profile.link_way != tensors.way())
    note(fmt::format("the link of {} was measured where {}; here {}: profile again, or predictions are off",
                     planning.profile_file, words_for(profile.link_way), words_for(tensors.way())));
}

}  // namespace

Profile read_profile(const GivenFiles& given, const PlanningOptions& planning) {
  Profile profile = read_profile(given.profile, planning.profile_file,
                                 planning.backward_split.value_or(default_weight_share));
  if (planning.backward_split && !profile.ids_are_names)
    throw Error(
        fmt::format("--backward-split is for times in PipeDream's graph.txt, but {} has those of both "
                    "halves of a backward",
                    planning.profile_file),
        "leave it out", ExitCode::usage);
  return profile;
}

Profile given_profile(const GivenFiles& given, const PlanningOptions& planning, const Graph& lowered) {
  Profile profile = read_profile(given, planning);
  check_subject(profile, planning.profile_file, lowered);
  return profile;
}

Profile measured_profile(const PlanningOptions& planning, const NetworkOptions& network, const Graph& lowered,
                         const std::shared_ptr<const Optimiser>& optimiser, Rank& rank,
                         const ChosenTransport& tensors) {
  Context& context = rank.context;
  Job& job = rank.job;
  check_available_memory(job, MemoryOf::profiling,
                         profiling_need(lowered, *optimiser, context.backend(), network.microbatches),
                         device_memory(context));
  MeasureOptions options{.optimiser = optimiser, .microbatches = network.microbatches};
  if (!context.backend().host_memory()) options.budget_s = 1.5;  // its times hardly vary
  const double usual_s = options.budget_s;
  if (planning.measure_s > 0) options.budget_s = planning.measure_s;
  double starved_share = 0;
  options.starved_share = &starved_share;
  std::optional<ProgressBar> bar;
  if (job.rank() == 0) {
    bar.emplace(stdout);
    options.progress = [&](const MeasureProgress& p) {
      bar->show_share(p.share, p.left_s, fmt::format("measuring {}: {}", lowered.model(), p.node));
    };
  }
  Profile profile = measure(lowered, context, tensors.over(rank.job), options);
  if (profile.link.bytes_per_s > 0) profile.link_way = tensors.way();
  if (job.rank() != 0) return profile;
  bar->give_way();
  if (starved_share > doubtful_starved_share)
    warn_of_starving(fmt::format("a rank had no core for {} % of the profiling", percent(starved_share)), job,
                     context);
  if (!worth_keeping(starved_share, options.budget_s, usual_s)) return profile;
  try {
    ProfileCache(planning.profile_cache)
        .keep(profile_subject(lowered, *optimiser, context, network.microbatches, job.local_size()), profile);
  } catch (const std::exception& error) {  // a run does not need the cache
    note(fmt::format("the measured profile is not kept: {}", error.what()));
  }
  return profile;
}

Profile obtain_profile(const GivenFiles& given, const PlanningOptions& planning,
                       const NetworkOptions& network, const Graph& lowered,
                       const std::shared_ptr<const Optimiser>& optimiser, Rank& rank,
                       const ChosenTransport& tensors) {
  if (!planning.profile_file.empty()) {
    Profile profile = given_profile(given, planning, lowered);
    note_another_way(profile, planning, rank, tensors);
    return profile;
  }
  const std::string kept = kept_profile(planning, network, lowered, *optimiser, rank.context, rank.job);
  if (kept.empty()) return measured_profile(planning, network, lowered, optimiser, rank, tensors);
  Profile profile = profile_from_json(kept, "the kept profile of rank 0");
  profile.link = measure_link(tensors.over(rank.job), rank.context);
  profile.link_way = profile.link.bytes_per_s > 0 ? tensors.way() : "";
  return profile;
}

}  // namespace antichain
