#include "app/obtain/lowered_network.h"

#include "framework/backend.h"
#include "models/model.h"

namespace antichain {
namespace {

Graph named_model(const NetworkOptions& network) {
  return make_model(network.model, {.form = network.form == "cifar" ? Form::cifar : Form::imagenet,
                                    .microbatch = network.microbatch(),
                                    .classes = network.classes,
                                    .image = network.image,
                                    .label_smoothing = float(network.label_smoothing),
                                    .soft_labels = network.soft_labels,
                                    .dropout = network.dropout,
                                    .stochastic_depth = network.stochastic_depth,
                                    .aux = network.aux});
}

}  // namespace

Graph lowered_network(const NetworkOptions& network, Rank& rank) {
  rank.job.activity().doing("choosing the kernels of the network");
  const Progress::Computing computing(rank.job.activity());  // engines may have to be compiled
  return lower(named_model(network), rank.context.backend(), parse_precision(network.precision));
}

Graph lowered_network(const NetworkOptions& network, const MachineOptions& machine) {
  const Backend& device = backend(machine.device);
  const Context context(device, machine.threads);
  device.enter(context);  // an engine's choice may depend on the thread count
  return lower(named_model(network), device, parse_precision(network.precision));
}

}  // namespace antichain
