// antichain profile measures what every node of a model costs on this machine, and the link between ranks.
//
// Under mpirun or --local all ranks measure at once, because they will compute at once. Rank 0's figures
// count.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/cli/table.h"
#include "app/job/agreement.h"
#include "app/job/job.h"
#include "app/obtain/given_files.h"
#include "app/obtain/lowered_network.h"
#include "app/obtain/profile.h"
#include "app/options/options.h"
#include "app/report/engines_report.h"
#include "app/report/roofline.h"
#include "app/train/optimiser_options.h"
#include "framework/backend.h"
#include "framework/json.h"
#include "models/model.h"
#include "pipeline/measure/compare_engines.h"

namespace antichain {
namespace {

struct ProfileOptions {
  NetworkOptions network;
  MachineOptions machine;
  OptimiserOptions optimiser;
  PlanningOptions planning;  // only how a profile is measured and kept
  std::string json_file;
  bool tune = false, roofline = false;
};

Table node_table(const Profile& profile) {
  using enum Table::Align;
  Table table({{"node"},
               {"name", left, Table::Role::key},
               {"operator", left},
               {"forward\nms"},
               {"input\ngrad. ms"},
               {"weight\ngrad. ms"},
               {"output\nMiB"},
               {"weights\nMiB"},
               {"stash\nMiB"}});
  for (size_t id = 0; id < profile.nodes.size(); ++id) {
    const ProfileNode& node = profile.nodes[id];
    const NodeCost& cost = node.cost;
    table.add({std::to_string(id), node.name, node.op, milliseconds_or_dash(cost.forward_s),
               milliseconds_or_dash(cost.backward_input_s), milliseconds_or_dash(cost.backward_weight_s),
               mebibytes_or_dash(cost.output_bytes), mebibytes_or_dash(cost.param_bytes),
               mebibytes_or_dash(cost.stash_bytes)});
  }
  return table;
}

NodeCost sum_of(const Profile& profile) {
  NodeCost sum;
  for (const ProfileNode& node : profile.nodes) {
    sum.forward_s += node.cost.forward_s;
    sum.backward_input_s += node.cost.backward_input_s;
    sum.backward_weight_s += node.cost.backward_weight_s;
    sum.update_s += node.cost.update_s;
    sum.param_bytes += node.cost.param_bytes;
    sum.optimiser_bytes = sum.optimiser_bytes.value_or(0) + node.cost.slot_bytes();
    sum.flops += node.cost.flops;
  }
  return sum;
}

void print(const Profile& profile) {
  const NodeCost sum = sum_of(profile);
  fmt::print("Profile of {} in {} and micro-batches of {} on {}\n{} at once, {} each\n\n{}\n", profile.model,
             name_of(profile.precision), profile.microbatch, profile.device,
             counted(profile.ranks_at_once, "rank"), counted(profile.threads, "thread"),
             node_table(profile).str());
  fmt::print(
      "All nodes, one micro-batch\n  forward          {:>9} ms   ({:.0f} GFLOP/s)\n  input gradients  {:>9} "
      "ms\n"
      "  weight gradients {:>9} ms\nUpdate, once a step {:>8} ms\nWeights            {:>9} MiB\n"
      "Optimiser's state  {:>9} MiB\n",
      milliseconds(sum.forward_s), sum.flops / sum.forward_s * 1e-9, milliseconds(sum.backward_input_s),
      milliseconds(sum.backward_weight_s), milliseconds(sum.update_s), mebibytes(sum.param_bytes),
      mebibytes(sum.slot_bytes()));
  if (profile.link.bytes_per_s > 0) {
    fmt::print("Link between ranks  {:>8.2f} GB/s, latency {:.1f} us{}{}\n", profile.link.bytes_per_s * 1e-9,
               profile.link.latency_s * 1e6,
               profile.link.core_share > 0
                   ? fmt::format(", which takes {:.0f} % of a rank's core", 100 * profile.link.core_share)
                   : "",
               profile.link_way.empty() ? "" : fmt::format(": {}", profile.link_way));
  }
}

void run(const ProfileOptions& options) {
  end_dry_run();
  if (options.tune) check_tunable(backend(options.machine.device));
  if (options.roofline) check_roofs(backend(options.machine.device));
  run_job(options.machine, [&](Rank& rank) {
    const Graph graph = lowered_network(options.network, rank);
    check_same_kernels(rank, options.machine, graph);
    // 1. Check that the result can be written.
    read_given_files(options.planning, ScheduleOptions().schedule, {options.json_file}, rank.job);
    warn_of_crowding(rank);
    // 2. Measure.
    const ChosenTransport tensors = choose_transport(rank.context, rank.job, options.machine.transport);
    const Profile profile = measured_profile(options.planning, options.network, graph,
                                             make_optimiser(options.optimiser), rank, tensors);
    std::vector<TunedPass> tuned;
    if (options.tune) tuned = compare_engines(graph, rank.context, rank.job.activity());
    Roofs roofs;
    if (options.roofline) {
      const Graph products =
          large_products(rank.context.backend(), graph.precision(), rank.context.threads());
      roofs = measure_roofs(products, rank.context, rank.job);
    }
    // 3. Report.
    if (!rank.prints()) return;
    print(profile);
    if (options.tune) fmt::print("\n{}", describe(tuned));
    if (options.roofline) fmt::print("\n{}", describe(graph, profile, options.network.microbatches, roofs));
    write_output(options.json_file, to_json(profile));
  });
}

}  // namespace

void add_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App& command = add_command(
      app, "profile", "measure every node of a model and the link between ranks",
      "mpirun -n 4 antichain profile --model resnet18 --batch 128 --microbatches 8 --json profile.json");
  add_network_options(command, options->network);
  add_measured_optimiser_options(command, options->optimiser);
  add_machine_options(command, options->machine);
  add_transport_option(command, options->machine);
  add_measuring_options(command, options->planning, "--seconds");
  add_option(
      command, "Planning", "--tune", options->tune, {},
      "time every engine that obeys the rule for each convolution, and say which is the fastest; training "
      "goes by the rule");
  add_option(
      command, "Planning", "--roofline", options->roofline, {},
      "say for each kind of operator which share of a step it takes, and how near it comes to the peaks "
      "of FLOPs and of memory's bandwidth, measured in the same run");
  add_output_option(command, "--json", options->json_file, "write the profile, for --profile");
  show_first(command, {"--model", "--graph", "--form", "--batch", "--microbatches", "--precision", "--image",
                       "--classes", "--local", "--device", "--threads", "--seconds", "--json"});
  command.callback([options, &command] {
    settle_batch(options->network);
    settle_optimiser(command, recipe_of(options->network.chosen()), options->optimiser);
    run(*options);
  });
}

}  // namespace antichain
