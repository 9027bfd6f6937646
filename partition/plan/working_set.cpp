#include "partition/plan/working_set.h"

#include <algorithm>
#include <map>

#include "framework/in_place.h"
#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

// A StageSegment is a run of recomputed places: those from `first` to before `end`.
struct StageSegment {
  int first = 0, end = 0;
  int at = 0;                       // the place before whose backward it runs
  int group = 0;                    // of segments that read one another
  std::vector<int64_t> there = {};  // by place from `first`: what the nodes up to it leave
  int64_t excess = 0;               // that computing it takes at most beyond what it leaves

  int64_t bytes(int place) const { return there[size_t(std::min(place, end - 1) - first)]; }
};

std::vector<StageSegment> segments_of(const StageOrder& order, const std::vector<bool>& again) {
  std::vector<StageSegment> found;
  std::vector<int64_t> most;  // that computing each takes
  for (int i = 0; i < order.size(); ++i) {
    if (!again[size_t(i)]) continue;
    if (found.empty() || found.back().end != i) {
      found.push_back({.first = i, .group = int(found.size())});
      most.push_back(0);
    }
    StageSegment& segment = found.back();
    segment.end = i + 1, segment.at = i;
    segment.there.push_back((segment.there.empty() ? 0 : segment.there.back()) +
                            order.places[size_t(i)].kept_bytes);
    int64_t taken = segment.there.back();
    for (int m = segment.first; m <= i; ++m) {
      const StageOrder::Read& output = order.tensors[size_t(m)];
      if (!output.reread && (m == i || output.there(i))) taken += output.bytes;
    }
    most.back() = std::max(most.back(), taken);
    segment.excess = most.back() - segment.there.back();
  }
  return found;
}

// Joins segments that read one another, and finds when each has to be there. Returns, by place, the excess of
// what is computed there; −1: nothing is.
std::vector<int64_t> find_times(const StageOrder& order, const std::vector<bool>& again,
                                std::vector<StageSegment>& all) {
  std::vector<int64_t> excess(order.places.size(), -1);
  const auto segment_at = [&](int place) -> StageSegment& {
    return *std::ranges::find_if(all, [&](const StageSegment& s) { return s.end > place; });
  };
  const auto compute = [&](const StageSegment& segment, int place) {
    for (const StageSegment& other : all)
      if (other.group == segment.group) excess[size_t(place)] = std::max(excess[size_t(place)], other.excess);
  };
  for (int i = 0; i < order.size(); ++i) {
    for (const int tensor : order.places[size_t(i)].inputs) {
      if (tensor >= order.size() || !again[size_t(tensor)]) continue;
      StageSegment& read = segment_at(tensor);
      if (again[size_t(i)]) {
        const int joins = read.group, to = segment_at(i).group;
        for (StageSegment& other : all)
          if (other.group == joins) other.group = to;
      } else if (order.tensors[size_t(tensor)].reread && order.places[size_t(i)].has_backward) {
        read.at = i;
        compute(read, i);
      }
    }
    if (again[size_t(i)] && segment_at(i).end == i + 1) compute(segment_at(i), i);
  }
  for (const StageSegment& segment : std::vector<StageSegment>(all))
    for (StageSegment& other : all)
      if (other.group == segment.group) other.at = std::max(other.at, segment.at);
  return excess;
}

}  // namespace

StageOrder::StageOrder(const Profile& profile, const std::vector<std::vector<int>>& consumers,
                       const std::vector<int>& nodes) {
  const auto place_of = [&](int node) {
    const auto found = std::ranges::lower_bound(nodes, node);
    return found != nodes.end() && *found == node ? int(found - nodes.begin()) : -1;
  };
  for (const int n : nodes) {
    const ProfileNode& node = profile.nodes[size_t(n)];
    places.push_back({.forward_s = node.cost.forward_s,
                      .kept_bytes = antichain::kept_bytes(node.cost),
                      .computes = node.role == Role::compute,
                      .has_backward = node.needs_gradient || node.role == Role::loss});
    tensors.push_back({.bytes = node.cost.output_bytes, .reread = node.cost.keeps_output});
  }
  // Its readers have their backwards from `last` down to `first`. The one at `over` has it in its own.
  const auto add_gradient = [&](int node, int first, int last, int over = -1) {
    if (!profile.nodes[size_t(node)].needs_gradient) return;
    const int64_t bytes = profile.nodes[size_t(node)].cost.output_bytes;
    for (int i = first; i <= last && i < size(); ++i) {
      if (i != over) places[size_t(i)].gradient_bytes += bytes;
      if (i < last) places[size_t(i)].come_bytes += bytes;
    }
  };
  std::map<int, std::pair<int, int>> others;  // the tensor, and its first reader
  for (int i = 0; i < size(); ++i)
    for (const int input : profile.nodes[size_t(nodes[size_t(i)])].inputs) {
      int tensor = place_of(input);
      if (tensor < 0) {
        const auto [other, fresh] = others.try_emplace(input, int(tensors.size()), i);
        if (fresh) tensors.push_back({.bytes = profile.nodes[size_t(input)].cost.output_bytes});
        tensor = other->second.first;
      }
      tensors[size_t(tensor)].last_reader = i;
      std::vector<int>& inputs = places[size_t(i)].inputs;
      if (std::ranges::count(inputs, tensor) > 0) continue;
      inputs.push_back(tensor);
      ++tensors[size_t(tensor)].readers;
    }
  for (const auto& [node, other] : others)
    add_gradient(node, other.second, tensors[size_t(other.first)].last_reader);
  for (int i = 0; i < size(); ++i) {
    const std::vector<int>& readers = consumers[size_t(nodes[size_t(i)])];
    if (readers.empty()) continue;
    const bool leaves = std::ranges::any_of(readers, [&](int c) { return place_of(c) < 0; });
    const int last = place_of(readers.back());
    const bool in_place = last >= 0 && tensors[size_t(last)].bytes == tensors[size_t(i)].bytes &&
                          works_in_place(profile.nodes[size_t(readers.back())].op);
    tensors[size_t(i)].overwritten = in_place && readers.size() == 1 && !tensors[size_t(i)].reread;
    // Its fold begins with the last reader, whose own gradient is in a tensor of this stage.
    const bool over = in_place && tensors[size_t(last)].last_reader >= 0;
    add_gradient(nodes[size_t(i)], i, leaves ? size() : tensors[size_t(i)].last_reader, over ? last : -1);
  }
}

WorkingSet working_set(const StageOrder& order, const std::vector<bool>& again) {
  WorkingSet all;
  std::vector<bool> begun_from(order.tensors.size());
  for (int i = 0; i < order.size(); ++i) {
    if (!again[size_t(i)]) {
      all.kept_bytes += order.places[size_t(i)].kept_bytes;
      continue;
    }
    all.forward_s += order.places[size_t(i)].forward_s;
    for (const int tensor : order.places[size_t(i)].inputs)
      if (tensor >= order.size() || (!again[size_t(tensor)] && !order.tensors[size_t(tensor)].reread))
        begun_from[size_t(tensor)] = true;
  }
  for (size_t t = 0; t < begun_from.size(); ++t)
    if (begun_from[t]) all.kept_bytes += order.tensors[t].bytes;
  std::vector<StageSegment> segments = segments_of(order, again);
  const std::vector<int64_t> excess = find_times(order, again, segments);
  for (int i = 0; i < order.size(); ++i) {
    int64_t there = -1;
    for (const StageSegment& segment : segments)
      if (segment.first <= i && i <= segment.at) there = std::max<int64_t>(there, 0) + segment.bytes(i);
    if (there < 0) continue;
    const StageOrder::Place& place = order.places[size_t(i)];
    all.again_bytes = std::max(all.again_bytes, there + place.gradient_bytes);
    if (excess[size_t(i)] < 0) continue;
    all.again_bytes = std::max(all.again_bytes, there + place.come_bytes + excess[size_t(i)]);
  }
  return all;
}

}  // namespace antichain
