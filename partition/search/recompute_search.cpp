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
constexpr size_t few = 16, many = 300, most_labels = 3000;  // per place: few find what rules out many
constexpr int deepest = 7;                                  // halvings of the range of working sets
constexpr size_t most_known = 20'000;                       // stages of a fitter
constexpr int most_prices = 40;                             // of a byte

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

  // A working set below the floor is as good as one of that size.
  bool beats(const Label& other, int64_t floor) const {
    if (ns > other.ns || kept > other.kept || most > std::max(other.most, floor) || sum > other.sum ||
        taken > other.taken || joined > other.joined || excess > other.excess)
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

// A RestBound says what the places from each one on take at least, in time and at some price of a byte that
// is kept. Each of them chooses for itself, but no segment grows beyond the largest working set.
class RestBound {
 public:
  RestBound(const StageOrder& order, const std::vector<int64_t>& ns, double price, int64_t most)
      : order_(order), most_(most), before_(ns.size() + 1), value_(ns.size() + 1), closed_(ns.size() + 1) {
    for (size_t i = 0; i < ns.size(); ++i) before_[i + 1] = before_[i] + double(ns[i]);
    value_.back() = before_.back();
    for (int i = order.size() - 1; i >= 0; --i) {
      const double kept = price * double(order.places[size_t(i)].kept_bytes) + closed_[size_t(i) + 1];
      value_[size_t(i)] = before_[size_t(i)] + kept;
      const int end = reach(i, 0);
      closed_[size_t(i)] = end == i ? kept : std::min(kept, price * begin_bytes(i) + run(i, i + 1, end));
    }
  }

  // Before place i no segment goes on, or one that has so many bytes.
  double closed(int i) const { return closed_[size_t(i)]; }
  double open(int i, int64_t bytes) const { return run(i, i, reach(i, bytes)); }

 private:
  // Returns the end of the longest segment that goes on with place i.
  int reach(int i, int64_t bytes) const {
    for (; i < order_.size(); ++i) {
      const StageOrder::Place& place = order_.places[size_t(i)];
      bytes += place.kept_bytes;
      if (!place.computes || bytes + place.gradient_bytes > most_) break;
    }
    return i;
  }
  // Place i and those behind it are computed again, up to one between these.
  double run(int i, int first, int last) const {
    return *std::min_element(value_.begin() + first, value_.begin() + last + 1) - before_[size_t(i)];
  }
  // A segment begins from the output of the place before, which may be kept for it alone.
  double begin_bytes(int i) const {
    if (i == 0) return 0;
    const StageOrder::Read& tensor = order_.tensors[size_t(i) - 1];
    return tensor.reread || tensor.readers != 1 || tensor.last_reader != i ? 0 : double(tensor.bytes);
  }

  const StageOrder& order_;
  const int64_t most_;
  std::vector<double> before_, value_, closed_;
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
    find_prices();
  }

  int64_t made() const { return made_; }       // labels
  bool complete() const { return complete_; }  // whether the last pass left nothing out
  std::optional<RecomputeChoice> run() {
    for (const size_t width : {few, many}) {
      look_at(0, budget_, width);
      if (complete_) break;
    }
    if (!complete_) {
      complete_ = true;
      halve(0, budget_, 0);
    }
    if (best_) best_->exact = complete_;
    return best_;
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
  }

  // Looks for something better whose largest working set is in this range.
  void look_at(int64_t floor, int64_t ceiling, size_t width) {
    floor_ = floor, ceiling_ = ceiling;
    complete_ = true;
    rests_.clear();
    for (const double price : prices_) rests_.emplace_back(order_, ns_, price, ceiling);
    keeps_.emplace(order_, std::vector<int64_t>(ns_.size()), 1, ceiling);
    std::optional<RecomputeChoice> better = pass(width);
    if (!better) return;
    best_ = std::move(better);
    if (by_time_)
      most_ns_ = best_->ns - 1;
    else
      budget_ = best_->bytes - 1;
  }

  void halve(int64_t floor, int64_t ceiling, int depth) {
    ceiling = std::min(ceiling, budget_);
    if (ceiling < floor) return;
    const bool complete = complete_, last = depth == deepest || floor == ceiling;
    look_at(floor, ceiling, last ? most_labels : many);
    if (!complete_ && !last && made_ < request_.effort) {
      complete_ = true;
      const int64_t middle = floor + (ceiling - floor) / 2;
      halve(middle + 1, ceiling, depth + 1);
      halve(floor, middle, depth + 1);
    }
    complete_ &= complete;
  }

  // Returns a bound on the time of the places from i on. It is a concave function of the price.
  int64_t rest_ns(const Label& label, int i) const {
    const double room =
        double(budget_ - std::max(label.most, floor_)) / request_.in_flight - double(label.kept);
    const auto at = [&](size_t p) { return rest(rests_[p], label, i) - prices_[p] * room; };
    size_t low = 0, high = prices_.size();
    if (high == 0) return 0;
    while (high - low > 1) {
      const size_t middle = (low + high) / 2;
      (at(middle) >= at(middle - 1) ? low : high) = middle;
    }
    return int64_t(std::max(0.0, at(low)) * (1 - 1e-9));
  }
  static double rest(const RestBound& bound, const Label& label, int i) {
    return label.open ? bound.open(i, label.sum + label.joined) : bound.closed(i);
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
      if (label.where[s] == own && !tensor.reread && tensor.there(i)) taken += tensor.bytes;
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
    if (label.most > ceiling_) return false;
    const int64_t bytes = request_.in_flight * (label.kept + int64_t(rest(*keeps_, label, next))) +
                          std::max(label.most, floor_);
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
      if (std::ranges::any_of(alike, [&](size_t l) { return left[l].beats(label, floor_); })) continue;
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
          ++made_;
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
  int64_t floor_ = 0, ceiling_ = no_budget;  // of the largest working set
  std::vector<double> prices_;               // ascending
  std::vector<RestBound> rests_;             // by price
  std::optional<RestBound> keeps_;           // of bytes alone
  std::optional<RecomputeChoice> best_;
  std::vector<Step> steps_;
  int64_t made_ = 0;  // labels
};

}  // namespace

std::optional<RecomputeChoice> least_time(const StageOrder& order, const RecomputeRequest& request) {
  RecomputeSearch search(order, request, true);
  std::optional<RecomputeChoice> found = search.run();
  if (found) found->labels = search.made();
  if (found || search.complete()) return found;
  RecomputeChoice fewest = least_bytes(order, request);
  if (fewest.bytes > request.budget_bytes) return std::nullopt;
  for (size_t i = 0; i < fewest.again.size(); ++i)
    if (fewest.again[i]) fewest.ns += work_ns({.forward_s = order.places[i].forward_s}, request.speed);
  fewest.exact = false;
  fewest.labels = search.made();
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
  const RecomputeRequest request{
      .in_flight = seat.in_flight, .budget_bytes = budget, .speed = seat.speed, .effort = effort_};
  std::optional<RecomputeChoice> found = least_time(order, request);
  if (found) effort_ = std::max<int64_t>(0, effort_ - found->labels);
  return found;
}

int64_t StageFitter::least_bytes(const std::vector<int>& nodes, const StageSeat& seat) const {
  return other_bytes(nodes, seat) +
         antichain::least_bytes(StageOrder(profile_, consumers_, nodes), {.in_flight = seat.in_flight}).bytes;
}

}  // namespace antichain
