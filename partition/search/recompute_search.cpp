#include "partition/search/recompute_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <unordered_map>

#include "framework/error.h"
#include "partition/plan/stage_cost.h"

namespace antichain {
namespace {

constexpr int64_t no_budget = std::numeric_limits<int64_t>::max() / 4;
constexpr size_t widths[] = {16, 300};  // labels per place: few find what rules out many
constexpr size_t most_known = 20'000;   // stages of a fitter
constexpr int most_prices = 12;         // of a byte

// What a label knows of a tensor that later nodes read.
enum Where : char {
  there,      // kept, and counted
  uncounted,  // not needed so far; what is computed again from it needs it
  own,        // computed again by the segment that goes on
  joined,     // by an earlier one that this one reads
  closed,     // by closed segment 0; the next is closed + 1
};

// A Closed segment is one that ended, and of which later nodes may read.
struct Closed {
  int64_t bytes = 0;   // that it leaves, with those that it reads
  int64_t excess = 0;  // that computing it takes at most beyond these
  int64_t beside = 0;  // the most that was there without it, at the places behind `until`; −1: no such place
  int until = 0;       // it has to be there at the places up to this one
};

struct Label {
  int64_t ns = 0, kept = 0, most = 0;  // `most` is the largest working set so far
  bool open = false;                   // whether a segment goes on
  int64_t sum = 0, taken = 0;          // of it: what it leaves so far, and the most that computing it took
  int64_t joined = 0, excess = 0;      // of those that it reads
  std::string where = {};              // by open tensor
  std::vector<Closed> closed = {};
  int step = -1;
  int64_t rank = 0;

  bool beats(const Label& other) const {
    if (ns > other.ns || kept > other.kept || most > other.most || sum > other.sum || taken > other.taken ||
        joined > other.joined || excess > other.excess)
      return false;
    for (size_t k = 0; k < closed.size(); ++k)
      if (closed[k].bytes > other.closed[k].bytes || closed[k].excess > other.closed[k].excess ||
          closed[k].beside > other.closed[k].beside)
        return false;
    return true;
  }
  // What later nodes can tell apart.
  std::string key() const {
    std::string key = where;
    for (size_t k = 1; k < closed.size(); ++k)
      for (size_t l = 0; l < k; ++l)
        key += closed[k].until < closed[l].until ? '<' : closed[k].until > closed[l].until ? '>' : '=';
    return key + (open ? '+' : '-');
  }
};

class RecomputeSearch {
 public:
  RecomputeSearch(const StageOrder& order, const RecomputeRequest& request, bool by_time)
      : order_(order), request_(request), by_time_(by_time), budget_(request.budget_bytes) {
    const int n = order.size();
    for (const StageOrder::Place& place : order.places)
      ns_.push_back(by_time ? work_ns({.forward_s = place.forward_s}, request.speed) : 0);
    open_.resize(size_t(n) + 1);
    for (int i = 0; i <= n; ++i)
      for (int t = 0; t < int(order.tensors.size()); ++t)
        if ((t < i || t >= n) && order.tensors[size_t(t)].last_reader >= i) open_[size_t(i)].push_back(t);
    must_keep_.assign(size_t(n) + 1, 0);
    for (int i = n - 1; i >= 0; --i)
      must_keep_[size_t(i)] = must_keep_[size_t(i) + 1] +
                              (order.places[size_t(i)].computes ? 0 : order.places[size_t(i)].kept_bytes);
    find_prices();
  }

  bool complete() const { return complete_; }  // whether the last pass left nothing out
  std::optional<RecomputeChoice> run() {
    std::optional<RecomputeChoice> best;
    for (const size_t width : widths) {
      complete_ = true;
      if (std::optional<RecomputeChoice> better = pass(width)) {
        best = std::move(better);
        // The next pass looks for something better.
        if (by_time_)
          most_ns_ = best->ns - 1;
        else
          budget_ = best->bytes - 1;
      }
      if (complete_) break;
    }
    if (best) best->exact = complete_;
    return best;
  }

 private:
  struct Step {
    int before = -1;
    bool again = false;
  };

  // A price is nanoseconds per byte and micro-batch in flight.
  void find_prices() {
    std::vector<double> all;
    for (int i = 0; by_time_ && i < order_.size(); ++i)
      if (order_.places[size_t(i)].computes && order_.places[size_t(i)].kept_bytes > 0)
        all.push_back(double(ns_[size_t(i)]) / double(order_.places[size_t(i)].kept_bytes));
    std::sort(all.begin(), all.end());
    for (int p = 0; p < most_prices && !all.empty(); ++p) {
      const double price = all[all.size() * size_t(2 * p + 1) / (2 * most_prices)];
      if (prices_.empty() || price > prices_.back()) prices_.push_back(price);
    }
    for (const double price : prices_) {
      std::vector<double>& rest = rests_.emplace_back(size_t(order_.size()) + 1, 0.0);
      for (int i = order_.size() - 1; i >= 0; --i) {
        const StageOrder::Place& place = order_.places[size_t(i)];
        const double keep = price * double(place.kept_bytes);
        rest[size_t(i)] =
            rest[size_t(i) + 1] + (place.computes ? std::min(keep, double(ns_[size_t(i)])) : keep);
      }
    }
  }

  // Returns a bound on the time of the places from i on.
  int64_t rest_ns(const Label& label, int i) const {
    const double room = double(budget_ - label.most) / request_.in_flight - double(label.kept);
    double rest = 0;
    for (size_t p = 0; p < prices_.size(); ++p)
      rest = std::max(rest, rests_[p][size_t(i)] - prices_[p] * room);
    return int64_t(rest * (1 - 1e-9));
  }

  // The closed segment has to be there up to the place before this one.
  static void extend(Label& label, size_t k) {
    Closed& segment = label.closed[k];
    if (segment.beside < 0) return;
    const int64_t with = segment.beside + segment.bytes;
    label.most = std::max(label.most, with);
    for (Closed& other : label.closed) {
      if (&other == &segment) continue;
      if (other.until <= segment.until)
        other.beside = std::max(other.beside, with);
      else if (other.beside >= 0)
        other.beside += segment.bytes;
    }
    segment.beside = -1;
  }

  static void rename(Label& label, char from, char to) {
    std::replace(label.where.begin(), label.where.end(), from, to);
  }
  static void remove(Label& label, size_t k) {
    label.closed.erase(label.closed.begin() + std::ptrdiff_t(k));
    for (char& where : label.where)
      if (where > closed + int(k)) --where;
  }

  size_t slot(int i, int tensor) const {
    const std::vector<int>& open = open_[size_t(i)];
    return size_t(std::ranges::lower_bound(open, tensor) - open.begin());
  }

  // So many bytes are there at the place at hand.
  static void note(Label& label, int64_t here) {
    for (Closed& segment : label.closed) segment.beside = std::max(segment.beside, here);
  }

  void compute_again(Label& label, int i) const {
    const StageOrder::Place& place = order_.places[size_t(i)];
    label.open = true;
    for (const int tensor : place.inputs) {
      char& where = label.where[slot(i, tensor)];
      if (where == uncounted) label.kept += order_.tensors[size_t(tensor)].bytes, where = there;
      if (where < closed) continue;
      const size_t k = size_t(where - closed);
      extend(label, k);
      label.joined += label.closed[k].bytes;
      label.excess = std::max(label.excess, label.closed[k].excess);
      rename(label, where, joined);
      remove(label, k);
    }
    label.sum += place.kept_bytes;
    int64_t taken = label.sum + (order_.tensors[size_t(i)].reread ? 0 : order_.tensors[size_t(i)].bytes);
    for (size_t s = 0; s < label.where.size(); ++s) {
      const StageOrder::Read& tensor = order_.tensors[size_t(open_[size_t(i)][s])];
      if (label.where[s] == own && !tensor.reread) taken += tensor.bytes;
    }
    label.taken = std::max(label.taken, taken);
    label.ns += ns_[size_t(i)];
    const int64_t here = place.gradient_bytes + label.sum + label.joined;
    label.most = std::max(label.most, here);
    note(label, here);
  }

  // The segment that goes on ends with place i.
  void close(Label& label, int i) const {
    const Closed made{.bytes = label.sum + label.joined,
                      .excess = std::max(label.excess, label.taken - label.sum),
                      .beside = -1,
                      .until = i};
    const int64_t here = order_.places[size_t(i)].come_bytes + made.bytes + made.excess;
    label.most = std::max(label.most, here);
    note(label, here);
    const char name = char(closed + int(label.closed.size()));
    label.closed.push_back(made);
    rename(label, own, name), rename(label, joined, name);
    label.open = false;
    label.sum = label.taken = label.joined = label.excess = 0;
  }

  void keep(Label& label, int i) const {
    const StageOrder::Place& place = order_.places[size_t(i)];
    if (label.open) close(label, i - 1);
    label.kept += place.kept_bytes;
    std::vector<bool> read(label.closed.size());
    for (const int tensor : place.inputs) {
      const char where = label.where[slot(i, tensor)];
      if (where >= closed && order_.tensors[size_t(tensor)].reread && place.has_backward)
        read[size_t(where - closed)] = true;
    }
    int64_t bytes = 0, excess = -1;
    for (size_t k = 0; k < read.size(); ++k) {
      if (!read[k]) continue;
      extend(label, k);
      bytes += label.closed[k].bytes, excess = std::max(excess, label.closed[k].excess);
    }
    const int64_t here = bytes + std::max(place.gradient_bytes, place.come_bytes + excess);
    if (excess >= 0) label.most = std::max(label.most, here);
    note(label, here);
    for (size_t k = 0; k < read.size(); ++k)
      if (read[k]) label.closed[k].until = i, label.closed[k].beside = -1;
  }

  // Leaves the tensors that places behind i read.
  void go_on(Label& label, int i, bool again) const {
    std::string where;
    for (const int tensor : open_[size_t(i) + 1])
      where += tensor != i                             ? label.where[slot(i, tensor)]
               : again                                 ? char(own)
               : order_.tensors[size_t(tensor)].reread ? char(there)
                                                       : char(uncounted);
    label.where = std::move(where);
    for (size_t k = label.closed.size(); k-- > 0;)
      if (label.where.find(char(closed + int(k))) == std::string::npos) remove(label, k);
  }

  bool possible(Label& label, int next) const {
    const int64_t bytes =
        request_.in_flight * (label.kept + must_keep_[size_t(next)]) + std::max(label.most, int64_t(0));
    if (bytes > budget_) return false;
    label.rank = by_time_ ? label.ns + rest_ns(label, next) : bytes;
    return !by_time_ || label.rank <= most_ns_;
  }

  // Drops labels that are beaten, and, where there are too many, those that promise least.
  void thin_out(std::vector<Label>& labels, size_t width) {
    std::stable_sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
      return std::pair(a.rank, a.kept) < std::pair(b.rank, b.kept);
    });
    std::unordered_map<std::string, std::vector<size_t>> known;
    std::vector<Label> left;
    for (Label& label : labels) {
      std::vector<size_t>& alike = known[label.key()];
      if (std::ranges::any_of(alike, [&](size_t l) { return left[l].beats(label); })) continue;
      if (left.size() == width) {
        complete_ = false;
        break;
      }
      alike.push_back(left.size());
      left.push_back(std::move(label));
    }
    labels = std::move(left);
  }

  std::optional<RecomputeChoice> pass(size_t width) {
    steps_.clear();
    Label first{.where = std::string(open_[0].size(), char(uncounted))};
    std::vector<Label> labels, next;
    if (possible(first, 0)) labels.push_back(first);
    for (int i = 0; i < order_.size(); ++i) {
      next.clear();
      for (const Label& label : labels)
        for (const bool again : {false, true}) {
          if (again && !order_.places[size_t(i)].computes) continue;
          Label made = label;
          again ? compute_again(made, i) : keep(made, i);
          go_on(made, i, again);
          if (!possible(made, i + 1)) continue;
          made.step = int(steps_.size());
          steps_.push_back({label.step, again});
          next.push_back(std::move(made));
        }
      thin_out(next, width);
      std::swap(labels, next);
    }
    for (Label& label : labels)
      if (label.open) close(label, order_.size() - 1);
    std::erase_if(labels, [&](Label& label) { return !possible(label, order_.size()); });
    const auto best = std::ranges::min_element(labels, {}, [&](const Label& label) {
      return std::pair(label.ns, request_.in_flight * label.kept + label.most);
    });
    return best == labels.end() ? std::nullopt : std::optional(choice_of(*best));
  }

  RecomputeChoice choice_of(const Label& label) const {
    RecomputeChoice choice{.again = std::vector<bool>(order_.places.size()),
                           .ns = label.ns,
                           .bytes = request_.in_flight * label.kept + label.most};
    int step = label.step;
    for (int i = order_.size() - 1; i >= 0; --i) {
      choice.again[size_t(i)] = steps_[size_t(step)].again;
      step = steps_[size_t(step)].before;
    }
    choice.set = working_set(order_, choice.again);
    ANTICHAIN_CHECK(choice.set.kept_bytes == label.kept && choice.set.again_bytes == label.most,
                    "the search and the formula of memory agree");
    return choice;
  }

  const StageOrder& order_;
  const RecomputeRequest& request_;
  const bool by_time_;
  int64_t budget_ = 0, most_ns_ = no_budget;
  bool complete_ = true;
  std::vector<int64_t> ns_;             // by place, of its forward
  std::vector<std::vector<int>> open_;  // by place: the tensors of earlier ones, and of others, that it or
                                        // later ones read
  std::vector<int64_t> must_keep_;      // from each place on
  std::vector<double> prices_;
  std::vector<std::vector<double>> rests_;  // by price and place
  std::vector<Step> steps_;
};

}  // namespace

std::optional<RecomputeChoice> least_time(const StageOrder& order, const RecomputeRequest& request) {
  RecomputeSearch search(order, request, true);
  std::optional<RecomputeChoice> found = search.run();
  if (found || search.complete()) return found;
  RecomputeChoice fewest = least_bytes(order, request);
  if (fewest.bytes > request.budget_bytes) return std::nullopt;
  for (size_t i = 0; i < fewest.again.size(); ++i)
    if (fewest.again[i]) fewest.ns += work_ns({.forward_s = order.places[i].forward_s}, request.speed);
  fewest.exact = false;
  return fewest;
}

RecomputeChoice least_bytes(const StageOrder& order, const RecomputeRequest& request) {
  RecomputeRequest any = request;
  any.budget_bytes = no_budget;
  return *RecomputeSearch(order, any, false).run();
}

std::vector<int> RecomputeChoice::of(const std::vector<int>& nodes) const {
  std::vector<int> chosen;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (again[i]) chosen.push_back(nodes[i]);
  return chosen;
}

int64_t StageFitter::other_bytes(const std::vector<int>& nodes, const StageSeat& seat) const {
  StageSum sum = sum_of(profile_, nodes);
  sum.kept_bytes = 0;
  return memory_bytes(sum, seat.in_flight, seat.replicas, sharded_);
}

const std::optional<RecomputeChoice>& StageFitter::fit(const std::vector<int>& nodes,
                                                       const StageSeat& seat) const {
  if (known_.size() > most_known) known_.clear();
  const auto [known, fresh] = known_.try_emplace({nodes, seat});
  if (fresh) known->second = choose(nodes, seat);
  return known->second;
}

std::optional<RecomputeChoice> StageFitter::choose(const std::vector<int>& nodes,
                                                   const StageSeat& seat) const {
  const StageSum sum = sum_of(profile_, nodes);
  if (seat.memory_bytes == 0 ||
      memory_bytes(sum, seat.in_flight, seat.replicas, sharded_) <= seat.memory_bytes)
    return RecomputeChoice{.again = std::vector<bool>(nodes.size()), .set = {.kept_bytes = sum.kept_bytes}};
  const int64_t budget = seat.memory_bytes - other_bytes(nodes, seat);
  if (budget < 0) return std::nullopt;
  const StageOrder order(profile_, consumers_, nodes);
  const RecomputeRequest request{.in_flight = seat.in_flight, .budget_bytes = budget, .speed = seat.speed};
  return least_time(order, request);
}

int64_t StageFitter::least_bytes(const std::vector<int>& nodes, const StageSeat& seat) const {
  return other_bytes(nodes, seat) +
         antichain::least_bytes(StageOrder(profile_, consumers_, nodes), {.in_flight = seat.in_flight}).bytes;
}

}  // namespace antichain
