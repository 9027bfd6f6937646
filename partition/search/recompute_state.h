// A RecomputeState is what later nodes of a stage can tell apart of the choices so far, by the formula of
// partition/plan/working_set.h: which tensors are kept, which a segment of recomputed nodes has, and how many
// bytes those segments leave.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "partition/plan/working_set.h"

namespace antichain {

struct RecomputeState {
  // A Closed segment is one that ended, and of which later nodes may read.
  struct Closed {
    int64_t bytes = 0;   // that it leaves, with those that it reads
    int64_t excess = 0;  // that computing it takes at most beyond these
    int64_t beside =
        0;          // the most that was there without it, at the places behind `until`; −1: no such place
    int until = 0;  // it has to be there at the places up to this one
  };

  bool open = false;       // whether a segment goes on
  int64_t bytes = 0;       // that it leaves so far, with those that it reads
  int64_t excess = 0;      // that computing those takes at most beyond what they leave, and
  int64_t beyond = 0;      // that computing it took so far, beyond what it leaves by now
  std::string where = {};  // by open tensor
  std::vector<Closed> closed = {};

  // States with equal keys differ in bytes alone. `write_bytes` adds those to a key, as multiples of a unit.
  std::string key() const;
  void write_bytes(int64_t unit, std::string& key) const;
  // Whether fewer bytes, or as many, are there in whatever follows. Keys are equal.
  bool beats(const RecomputeState&) const;
  // Takes the smaller of all bytes.
  void meet(const RecomputeState&);
};

// What a place adds to a choice.
struct RecomputeStep {
  int64_t kept_bytes = 0;
  int64_t working_bytes = 0;  // the largest working set that is certain by now
};

// RecomputeSteps go from a state before a place to one behind it.
class RecomputeSteps {
 public:
  explicit RecomputeSteps(const StageOrder&);  // keeps a reference

  RecomputeState first() const;
  // Returns a state before place i that is as good as any: whatever is open is kept.
  RecomputeState easiest(int i) const;
  // Computes place i again, or keeps it. Place size() is the end. Working sets below the floor are as good as
  // one of that size.
  RecomputeStep step(RecomputeState&, int i, bool again, int64_t floor) const;

 private:
  void compute_again(RecomputeState&, RecomputeStep&, int i) const;
  void keep(RecomputeState&, RecomputeStep&, int i) const;
  void close(RecomputeState&, RecomputeStep&, int i) const;
  void go_on(RecomputeState&, int i, bool again) const;
  size_t slot(int i, int tensor) const;

  void join_alike(RecomputeState&, int i) const;
  int64_t most_later(const RecomputeState&, int i) const;

  const StageOrder& order_;
  std::vector<std::vector<int>> open_;     // by place: the tensors of earlier ones, and of others, that it or
                                           // later ones read
  std::vector<std::vector<int>> readers_;  // by tensor: places
  std::vector<int64_t> rest_;              // by place: the largest working set of what is computed again from
                                           // it on, whatever that is
};

}  // namespace antichain
