// antichain profile: what every node of a model costs on this machine, and the link between ranks.
//
// Under mpirun or --local all ranks measure at once, as they will compute at once; rank 0's figures count.
#include <fmt/format.h>

#include <memory>

#include "app/commands.h"
#include "app/job.h"
#include "app/network.h"
#include "app/table.h"
#include "framework/json.h"

namespace antichain {
namespace {

struct ProfileOptions {
  NetworkOptions network;
  MachineOptions machine;
  std::string json_file;
};

void print(const Profile& profile) {
  using enum Table::Align;
  Table table({{"node"},
               {"name", left},
               {"operator", left},
               {"forward ms"},
               {"input grad ms"},
               {"weight grad ms"},
               {"update ms"},
               {"output MiB"},
               {"weights MiB"},
               {"stash MiB"},
               {"GFLOP/s"}});
  NodeCost sum;
  for (size_t id = 0; id < profile.nodes.size(); ++id) {
    const auto& [name, op, role, inputs, needs_gradient, cost] = profile.nodes[id];
    const double rate = cost.forward_s > 0 ? cost.flops / cost.forward_s * 1e-9 : 0;
    table.add({std::to_string(id), name, op, milliseconds(cost.forward_s),
               milliseconds(cost.backward_input_s), milliseconds(cost.backward_weight_s),
               milliseconds(cost.update_s), mebibytes(cost.output_bytes), mebibytes(cost.param_bytes),
               mebibytes(cost.stash_bytes), fmt::format("{:.0f}", rate)});
    sum.forward_s += cost.forward_s;
    sum.backward_input_s += cost.backward_input_s;
    sum.backward_weight_s += cost.backward_weight_s;
    sum.update_s += cost.update_s;
  }
  fmt::print("Profile of {}, micro-batches of {}, on {}\n{} thread(s) a rank, {} rank(s) at once\n{}",
             profile.model, profile.microbatch, profile.device, profile.threads, profile.ranks_at_once,
             table.str());
  fmt::print("  all: forward {} ms, input gradients {} ms, weight gradients {} ms, update {} ms\n",
             milliseconds(sum.forward_s), milliseconds(sum.backward_input_s),
             milliseconds(sum.backward_weight_s), milliseconds(sum.update_s));
  if (profile.link.bytes_per_s > 0) {
    fmt::print("  link: {:.2f} GB/s, latency {:.1f} us\n", profile.link.bytes_per_s * 1e-9,
               profile.link.latency_s * 1e6);
  }
}

void run(const ProfileOptions& options) {
  const Graph graph = lowered_network(options.network, options.machine);
  run_job(options.machine, [&](Rank& rank) {
    const Profile profile = obtain_profile({}, options.network, graph, rank.context, rank.transport);
    if (!rank.prints()) return;
    print(profile);
    if (!options.json_file.empty()) write_file(options.json_file, to_json(profile));
  });
}

}  // namespace

void add_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App& command = add_command(
      app, "profile", "measure every node of a model and the link between ranks",
      "mpirun -n 4 antichain profile --model resnet18 --batch 128 --microbatches 8 --json profile.json");
  add_network_options(command, options->network);
  add_machine_options(command, options->machine);
  add_json_option(command, options->json_file);
  command.callback([options] { run(*options); });
}

}  // namespace antichain
