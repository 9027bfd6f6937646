#include "pipeline/run/action_text.h"

#include <fmt/format.h>

namespace antichain {

std::string describe(const Message& message, const Graph& graph) {
  return fmt::format("{} of node {}", words_of(message.flow), graph[message.tensor].name);
}

std::string describe(const Action& a, const Graph& graph) {
  switch (a.verb) {
    case Verb::load:
      return fmt::format("loading micro-batch {}", a.microbatch);
    case Verb::recv:
      return fmt::format("receiving the {}, micro-batch {}", describe(a.message, graph), a.microbatch);
    case Verb::send:
      return fmt::format("sending the {}, micro-batch {}", describe(a.message, graph), a.microbatch);
    case Verb::forward:
      return fmt::format("forward of micro-batch {}", a.microbatch);
    case Verb::backward:
      return fmt::format("backward of micro-batch {}", a.microbatch);
    case Verb::backward_input:
      return fmt::format("input gradients of micro-batch {}", a.microbatch);
    case Verb::backward_weight:
      return fmt::format("weight gradients of micro-batch {}", a.microbatch);
    case Verb::reduce:
      return "adding up the weight gradients of all replicas";
    case Verb::vote:
      return "agreeing with the other ranks that the step's numbers are finite";
    case Verb::update:
      return "updating the weights";
  }
  return "";
}

}  // namespace antichain
