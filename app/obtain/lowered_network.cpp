#include "app/obtain/lowered_network.h"

#include "framework/backend.h"

namespace antichain {

Graph lowered_network(const NetworkOptions& network, Rank& rank) {
  rank.job.activity().doing("choosing the kernels of the network");
  const Progress::Computing computing(rank.job.activity());  // engines may have to be compiled
  return lower(network.made(network.microbatch()), rank.context.backend(),
               parse_precision(network.precision));
}

Graph lowered_network(const NetworkOptions& network, const MachineOptions& machine) {
  const Backend& device = backend(machine.device);
  const Context context(device, machine.threads);
  device.enter(context);  // an engine's choice may depend on the thread count
  return lower(network.made(network.microbatch()), device, parse_precision(network.precision));
}

}  // namespace antichain
