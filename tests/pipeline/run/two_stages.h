// This is rank 1 of a small network cut in two, for tests of one object of the runner alone. A convolution
// and a ReLU are on rank 0; a second convolution, the sum of both, and the loss are on rank 1.
#pragma once

#include <vector>

#include "framework/backend.h"
#include "layers/add.h"
#include "layers/conv2d.h"
#include "layers/cpu/backend.h"
#include "layers/flatten.h"
#include "layers/linear.h"
#include "layers/relu.h"
#include "models/model.h"
#include "pipeline/run/step_device.h"
#include "pipeline/schedule/schedule_passes.h"
#include "pipeline/stage/stage_memory.h"
#include "pipeline/transport/solo_transport.h"

namespace antichain::test {

// The transport of rank 1, which writes down what it is asked for: "recv 0" with the micro-batch.
class NotingTransport : public SoloTransport {
 public:
  int rank() const override { return 1; }
  int size() const override { return 2; }
  void send(MessageKey key, int, Tensor) override {
    noted.push_back("send " + std::to_string(key.microbatch));
  }
  Ticket recv(MessageKey key, int, Tensor) override {
    noted.push_back("recv " + std::to_string(key.microbatch));
    return key.microbatch;
  }
  void wait(Ticket ticket) override { noted.push_back("wait " + std::to_string(ticket)); }
  std::string name(MessageKey key) const { return name_of(key, 0, 1); }

  std::vector<std::string> noted;
};

// The ReLU's output has two consumers, so that its gradient is folded.
inline Graph two_consumers(const Backend& device, int microbatch = 2) {
  const ModelOptions o{.microbatch = microbatch, .classes = 10, .image = 8};
  Graph g("small");
  const ImageInputs in = add_image_inputs(g, o);
  const NodeId x = relu(g, "relu", conv2d(g, "conv1", in.images, {.out = 4, .kernel = 3, .pad = 1}));
  const NodeId y = add(g, "add", x, conv2d(g, "conv2", x, {.out = 4, .kernel = 3, .pad = 1}));
  add_loss(g, in.labels, linear(g, "linear", flatten(g, "flatten", y), {.out = 10}), o);
  return lower(g, device);
}

inline const Backend& cpu() {
  register_cpu_backend();
  return backend("cpu");
}

inline Plan cut_behind_relu(const Graph& graph, const Profile& profile) {
  Plan plan{.model = profile.model, .graph_hash = profile.graph_hash};
  plan.stages.resize(2);
  plan.stages[0].ranks = {0};
  plan.stages[1].ranks = {1};
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph[id].role() != Role::input) plan.stages[id > graph.find("relu")].nodes.push_back(id);
  return plan;
}

struct TwoStages {
  Graph graph = two_consumers(cpu());
  Profile profile = unpriced(graph, backend("cpu").description());
  Plan plan = cut_behind_relu(graph, profile);
  Schedule schedule = make_schedule(profile, plan, Policy::one_f_one_b, 4);
  NotingTransport transport;
  Context context{backend("cpu")};
  RankModel model{graph, plan.stages[1].nodes, context, 0};
  Program program = compile(schedule, profile, plan, step_network(graph), Mode::train);
  RankMemory of_rank{program.ranks[1], backend("cpu")};
  const StageMemory& memory = of_rank.of(1);
  Seat seat = seat_of(plan, 1, 4);
  std::unique_ptr<StepDevice> device = make_step_device(context, transport);
};

}  // namespace antichain::test
