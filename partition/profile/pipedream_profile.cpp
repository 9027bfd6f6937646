#include "partition/profile/pipedream_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <queue>
#include <string_view>
#include <vector>

#include "framework/random.h"
#include "partition/profile/graph_text.h"
#include "partition/profile/natural_order.h"
#include "partition/profile/pipedream_flops.h"

namespace antichain {
namespace {

// A Network holds the lines as a graph. It sorts nodes by id, so the order of the lines does not matter.
struct Network {
  std::vector<GraphText::Node> nodes;               // ids ascending, in natural order
  std::vector<std::vector<int>> inputs, consumers;  // ascending, without repeats: two equal edges count once
};

void add_edges(Network& network, const std::vector<GraphText::Edge>& edges, const std::string& origin) {
  std::map<std::string_view, int> index;
  for (size_t n = 0; n < network.nodes.size(); ++n) index[network.nodes[n].id] = int(n);
  network.inputs.resize(network.nodes.size());
  network.consumers.resize(network.nodes.size());
  for (const GraphText::Edge& edge : edges) {
    for (const std::string& end : {edge.from, edge.to})
      if (!index.count(end))
        fail_in_line(
            origin, edge.line,
            fmt::format("the edge {} -- {} needs a node {}, which has no line", edge.from, edge.to, end));
    if (edge.from == edge.to) fail_in_line(origin, edge.line, fmt::format("{} uses itself", edge.from));
    network.inputs[index[edge.to]].push_back(index[edge.from]);
    network.consumers[index[edge.from]].push_back(index[edge.to]);
  }
  for (auto* lists : {&network.inputs, &network.consumers})
    for (std::vector<int>& list : *lists) {
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
}

Network network_of(GraphText text, const std::string& origin) {
  Network network;
  network.nodes = std::move(text.nodes);
  std::sort(network.nodes.begin(), network.nodes.end(),
            [](const GraphText::Node& a, const GraphText::Node& b) { return natural_less(a.id, b.id); });
  add_edges(network, text.edges, origin);
  return network;
}

// Every remaining node lies on a cycle or behind one. Going back from any of them reaches a cycle.
[[noreturn]] void fail_on_cycle(const Network& network, const std::vector<int>& waits_for,
                                const std::string& origin) {
  const auto left_over = [&](int n) { return waits_for[n] > 0; };
  std::vector<bool> seen(network.nodes.size());
  int n = 0;
  while (!left_over(n)) ++n;
  for (; !seen[n]; n = *std::find_if(network.inputs[n].begin(), network.inputs[n].end(), left_over))
    seen[n] = true;
  fail_in_line(origin, network.nodes[n].line,
               fmt::format("{} lies on a cycle: it needs its own output", network.nodes[n].id));
}

// Source: A. B. Kahn, "Topological sorting of large networks", CACM 1962. Among the nodes that are ready, the
// one with the smallest id comes first.
std::vector<int> topological_order(const Network& network, const std::string& origin) {
  std::vector<int> order, waits_for(network.nodes.size());
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t n = 0; n < network.nodes.size(); ++n)
    if ((waits_for[n] = int(network.inputs[n].size())) == 0) ready.push(int(n));
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (int consumer : network.consumers[order.back()])
      if (--waits_for[consumer] == 0) ready.push(consumer);
  }
  if (order.size() < network.nodes.size()) fail_on_cycle(network, waits_for, origin);
  return order;
}

bool is_input(const Network& network, int n) {
  return network.inputs[n].empty() && network.nodes[n].description.starts_with("Input");
}

bool is_unused_item(const Network& network, int n) {
  return network.consumers[n].empty() && network.nodes[n].description.starts_with("__getitem__");
}

// A node with fewer bytes of parameters has biases or scales, whose gradients are sums along the way.
constexpr int64_t few_parameters = 10'000;

ProfileNode profile_node(const GraphText::Node& line, bool input, double weight_share) {
  ProfileNode node;
  node.name = line.id;
  node.op = line.description.substr(0, line.description.find('('));
  node.role = input ? Role::input : Role::compute;
  node.needs_gradient = !input;
  NodeCost& cost = node.cost;
  cost.output_bytes = line[GraphText::activation_size];
  cost.keeps_output = true;
  if (input) return node;  // its times are those of loading data, which no stage computes
  cost.forward_s = double(line[GraphText::forward_time]) / 1e9;
  cost.param_bytes = line[GraphText::parameter_size];
  const int64_t backward_ns = line[GraphText::backward_time];
  const int64_t weight_ns =
      cost.param_bytes > few_parameters ? std::llround(double(backward_ns) * weight_share) : 0;
  cost.backward_input_s = double(backward_ns - weight_ns) / 1e9;
  cost.backward_weight_s = double(weight_ns) / 1e9;
  cost.flops = pipedream_flops(line.description, cost.output_bytes / int64_t(sizeof(float)));
  return node;
}

// Returns vgg16 for "models/vgg16.txt" and for "models/vgg16/graph.txt".
std::string model_name(const std::filesystem::path& origin) {
  const std::string name = (origin.extension() == ".txt" ? origin.stem() : origin.filename()).string();
  const std::string folder = origin.parent_path().filename().string();
  return name == "graph" && !folder.empty() && folder[0] != '.' ? folder : name;
}

// Hashes the graph itself, independently of the file's name and the order of its lines.
std::string content_hash(const Network& network, const std::vector<int>& order) {
  std::string content;
  for (int n : order) {
    const GraphText::Node& node = network.nodes[n];
    content += fmt::format("{} -- {} -- {} {} {} {}:", node.id, node.description,
                           node[GraphText::forward_time], node[GraphText::backward_time],
                           node[GraphText::activation_size], node[GraphText::parameter_size]);
    for (int input : network.inputs[n]) content += " " + network.nodes[input].id;
    content += '\n';
  }
  return fmt::format("{:016x}", hash_bytes(content));
}

}  // namespace

Profile profile_from_pipedream(const std::string& text, const std::string& origin, double weight_share) {
  const Network network = network_of(parse_graph_text(text, origin), origin);
  const std::vector<int> order = topological_order(network, origin);
  Profile profile;
  profile.model = model_name(origin);
  profile.graph_hash = content_hash(network, order);
  profile.device = "unknown";
  profile.ids_are_names = true;
  std::vector<int> index(network.nodes.size());
  for (int n : order) {
    if (is_unused_item(network, n)) continue;
    index[n] = int(profile.nodes.size());
    profile.nodes.push_back(profile_node(network.nodes[n], is_input(network, n), weight_share));
    for (int input : network.inputs[n]) profile.nodes.back().inputs.push_back(index[input]);
    std::sort(profile.nodes.back().inputs.begin(), profile.nodes.back().inputs.end());
  }
  return profile;
}

}  // namespace antichain
