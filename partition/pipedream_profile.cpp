#include "partition/pipedream_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string_view>
#include <vector>

#include "framework/error.h"
#include "framework/random.h"
#include "partition/decimal.h"
#include "partition/json_text.h"
#include "partition/natural_order.h"
#include "partition/pipedream_flops.h"

namespace antichain {
namespace {

constexpr std::string_view separator = " -- ";

enum Field { forward_time, backward_time, activation_size, parameter_size, stage_id };
constexpr std::array<std::string_view, 5> field_names = {"forward_compute_time", "backward_compute_time",
                                                         "activation_size", "parameter_size", "stage_id"};

struct Line {
  std::string id, description;
  std::array<std::optional<int64_t>, 5> fields;  // nanoseconds, bytes
  int number = 0;
};

struct Edge {
  std::string from, to;
  int line = 0;
};

std::vector<std::string_view> split(std::string_view text, std::string_view between) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(between)) != std::string_view::npos;) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + between.size());
  }
  parts.push_back(text);
  return parts;
}

[[noreturn]] void fail_at(const std::string& origin, int line, const std::string& why) {
  throw Error(fmt::format("{}:{}: {}", origin, line, why), "correct the file or profile again");
}

// As much of a text as a sentence can hold.
std::string shown(std::string_view text) {
  return std::string(text.substr(0, 60)) + (text.size() > 60 ? "…" : "");
}

// The file's lines in its own words; what they mean together comes later.
class GraphText {
 public:
  GraphText(std::string_view text, const std::string& origin) : origin_(origin) {
    for (std::string_view line : split(text, "\n")) {
      ++line_;
      read_line(line.substr(0, line.find_last_not_of(" \r") + 1));
    }
    if (nodes.empty()) fail("there is no node line \"id -- description -- forward_compute_time=…, …\"");
  }

  std::vector<Line> nodes;
  std::vector<Edge> edges;

 private:
  [[noreturn]] void fail(const std::string& why) const { fail_at(origin_, line_, why); }

  void read_line(std::string_view line) {
    for (size_t i = 0; i < line.size(); ++i)
      if ((line[i] < ' ' || line[i] > '~') && !(i == 0 && line[i] == '\t'))
        fail(fmt::format("character {} is no printable ASCII", i + 1));
    if (line.empty()) return;
    if (line[0] == ' ') fail("the line starts with a space: edges are indented by a tab, nodes not at all");
    if (line[0] == '\t')
      read_edge(line.substr(1));
    else
      read_node(line);
  }

  void read_edge(std::string_view line) {
    const std::vector<std::string_view> ends = split(line, separator);
    if (ends.size() != 2) fail(fmt::format("\"{}\" is no edge \"id -- id\"", shown(line)));
    edges.push_back({id(ends[0]), id(ends[1]), line_});
  }

  void read_node(std::string_view line) {
    const std::vector<std::string_view> parts = split(line, separator);
    if (parts.size() < 3)
      fail(fmt::format(
          "\"{}\" is no node \"id -- description -- forward_compute_time=…, …\"; perhaps the line is cut off",
          shown(line)));
    Line node = {.id = id(parts[0]), .description = std::string(parts[1]), .number = line_};
    if (node.description.empty()) fail(fmt::format("{} has no description", node.id));
    for (size_t part = 2; part < parts.size(); ++part)
      for (std::string_view field : split(parts[part], ", ")) read_field(field, node);
    for (Field field : {forward_time, backward_time, activation_size, parameter_size})
      if (!node.fields[field])
        fail(fmt::format("{} has no {}; perhaps the line is cut off", node.id, field_names[field]));
    const auto [first, is_new] = line_of_.emplace(node.id, line_);
    if (!is_new) fail(fmt::format("the id {} is taken by line {}", node.id, first->second));
    nodes.push_back(std::move(node));
  }

  void read_field(std::string_view text, Line& node) {
    const size_t equals = text.find('=');
    const auto name = std::find(field_names.begin(), field_names.end(), text.substr(0, equals));
    if (equals == std::string_view::npos || name == field_names.end())
      fail(fmt::format("\"{}\" is no field of a node; known are {}", shown(text),
                       fmt::join(field_names, ", ")));
    const Field field = Field(name - field_names.begin());
    if (node.fields[field]) fail(fmt::format("{} has {} twice", node.id, *name));
    node.fields[field] =
        field == activation_size ? sizes(text.substr(equals + 1)) : amount(text.substr(equals + 1), field);
    if (field != stage_id && !total_[field <= backward_time ? 0 : field].add(*node.fields[field]))
      fail(fmt::format("{} of {} takes the sum over all nodes beyond {}", *name, node.id, limit(field)));
  }

  // One size, or a list [a; b; c] of them, summed.
  int64_t sizes(std::string_view text) const {
    if (!text.starts_with("[")) return amount(text, activation_size);
    if (!text.ends_with("]")) fail(fmt::format("the list \"{}\" has no end", shown(text)));
    Sum sum;
    int64_t total = 0;
    for (std::string_view one : split(text.substr(1, text.size() - 2), "; ")) {
      const int64_t size = amount(one, activation_size);
      if (!sum.add(size))
        fail(fmt::format("{} adds up to more than {}", shown(text), limit(activation_size)));
      total += size;
    }
    return total;
  }

  // Times from milliseconds to nanoseconds, sizes from bytes to bytes; fractions are rounded once.
  int64_t amount(std::string_view text, Field field) const {
    const std::optional<Decimal> number = decimal(text);
    if (!number) fail(fmt::format("{} is \"{}\", which is no number", field_names[field], shown(text)));
    if (number->negative && !number->digits.empty())
      fail(fmt::format("{} is {}, which is negative", field_names[field], shown(text)));
    const std::optional<int64_t> value = scaled(*number, field <= backward_time ? 6 : 0, most_of_all);
    if (!value) fail(fmt::format("{} is {}, more than {}", field_names[field], shown(text), limit(field)));
    return *value;
  }

  static std::string limit(Field field) {
    return field <= backward_time ? fmt::format("{} days", most_of_all / 86'400'000'000'000)
                                  : fmt::format("{} bytes", most_of_all);
  }

  std::string id(std::string_view text) const {
    if (text.empty()) fail("an id is missing");
    if (text.find_first_of(" \t,") != std::string_view::npos)
      fail(fmt::format("\"{}\" is no id: ids have no blanks and no commas", shown(text)));
    return std::string(text);
  }

  const std::string& origin_;
  int line_ = 0;
  std::map<std::string, int> line_of_;
  std::array<Sum, 5> total_;
};

// The lines as a graph: nodes by id, so that nothing depends on the order of lines.
struct Network {
  std::vector<Line> nodes;                          // ids ascending, in natural order
  std::vector<std::vector<int>> inputs, consumers;  // ascending, no repeats: two edges alike are one
};

void add_edges(Network& network, const std::vector<Edge>& edges, const std::string& origin) {
  std::map<std::string_view, int> index;
  for (size_t n = 0; n < network.nodes.size(); ++n) index[network.nodes[n].id] = int(n);
  network.inputs.resize(network.nodes.size());
  network.consumers.resize(network.nodes.size());
  for (const Edge& edge : edges) {
    for (const std::string& end : {edge.from, edge.to})
      if (!index.count(end))
        fail_at(origin, edge.line,
                fmt::format("the edge {} -- {} needs a node {}, which has no line", edge.from, edge.to, end));
    if (edge.from == edge.to) fail_at(origin, edge.line, fmt::format("{} uses itself", edge.from));
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
            [](const Line& a, const Line& b) { return natural_less(a.id, b.id); });
  add_edges(network, text.edges, origin);
  return network;
}

// Every node left over lies on a cycle or behind one; going back from any of them ends on a cycle.
[[noreturn]] void fail_on_cycle(const Network& network, const std::vector<int>& waits_for,
                                const std::string& origin) {
  const auto left_over = [&](int n) { return waits_for[n] > 0; };
  std::vector<bool> seen(network.nodes.size());
  int n = 0;
  while (!left_over(n)) ++n;
  for (; !seen[n]; n = *std::find_if(network.inputs[n].begin(), network.inputs[n].end(), left_over))
    seen[n] = true;
  fail_at(origin, network.nodes[n].number,
          fmt::format("{} lies on a cycle: it needs its own output", network.nodes[n].id));
}

// A. B. Kahn, "Topological sorting of large networks", CACM 1962; of the nodes that are ready always the first by id.
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

ProfileNode profile_node(const Line& line, bool input) {
  ProfileNode node;
  node.name = line.id;
  node.op = line.description.substr(0, line.description.find('('));
  node.role = input ? Role::input : Role::compute;
  node.needs_gradient = !input;
  NodeCost& cost = node.cost;
  cost.output_bytes = *line.fields[activation_size];
  cost.keeps_output = true;
  if (input) return node;  // its times are those of loading data, which no stage computes
  cost.forward_s = double(*line.fields[forward_time]) / 1e9;
  cost.backward_input_s = double(*line.fields[backward_time]) / 1e9;
  cost.param_bytes = *line.fields[parameter_size];
  cost.flops = pipedream_flops(line.description, cost.output_bytes / int64_t(sizeof(float)));
  return node;
}

// "models/vgg16.txt" and "models/vgg16/graph.txt" are vgg16.
std::string model_name(const std::string& origin) {
  std::vector<std::string_view> parts = split(origin, "/");
  std::string_view name = parts.back();
  if (name.ends_with(".txt") && name.size() > 4) name.remove_suffix(4);
  const bool has_folder =
      parts.size() > 1 && !parts[parts.size() - 2].empty() && parts[parts.size() - 2][0] != '.';
  return std::string(name == "graph" && has_folder ? parts[parts.size() - 2] : name);
}

// What the graph is, whatever the file and the order of its lines.
std::string content_hash(const Network& network, const std::vector<int>& order) {
  std::string content;
  for (int n : order) {
    const Line& line = network.nodes[n];
    content +=
        fmt::format("{} -- {} -- {} {} {} {}:", line.id, line.description, *line.fields[forward_time],
                    *line.fields[backward_time], *line.fields[activation_size], *line.fields[parameter_size]);
    for (int input : network.inputs[n]) content += " " + network.nodes[input].id;
    content += '\n';
  }
  return fmt::format("{:016x}", hash_bytes(content));
}

}  // namespace

Profile profile_from_pipedream(const std::string& text, const std::string& origin) {
  const Network network = network_of(GraphText(text, origin), origin);
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
    profile.nodes.push_back(profile_node(network.nodes[n], is_input(network, n)));
    for (int input : network.inputs[n]) profile.nodes.back().inputs.push_back(index[input]);
    std::sort(profile.nodes.back().inputs.begin(), profile.nodes.back().inputs.end());
  }
  return profile;
}

}  // namespace antichain
