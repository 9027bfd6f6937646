// A BestWatch compares the evaluations of a run: which is the best so far, and whether so many have followed
// without a better one that training ends early (Prechelt, "Early Stopping - But When?", in Neural Networks:
// Tricks of the Trade, 1998).
#pragma once

#include "framework/files/checkpoint.h"
#include "pipeline/transport/job.h"

namespace antichain {

class BestWatch {
 public:
  // `patience` is the number of evaluations without a better one that ends training; 0: none does.
  BestWatch(int patience, const BestEvaluation& so_far) : patience_(patience), best_(so_far) {}

  struct Judgement {
    bool finite = false;  // the loss
    bool better = false;
  };
  // Collective. Loss and accuracy are means over the test set, and those of rank 0 count. An evaluation is
  // better where its accuracy is higher, or where that is equal and its loss is smaller; a network that is
  // judged by its loss alone, as one of tokens is, has the accuracy 0. All ranks get the same answer.
  Judgement judge(Job&, int64_t step, double loss, double accuracy);

  const BestEvaluation& best() const { return best_; }
  bool exhausted() const { return patience_ > 0 && best_.since >= patience_; }

 private:
  bool is_better(double loss, double accuracy) const;

  const int64_t patience_;
  BestEvaluation best_;
};

}  // namespace antichain
