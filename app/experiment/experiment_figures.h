// This file draws the pictures of a speedup study with gnuplot and Graphviz, as SVG files. Colours are those
// of the plan's graph, which colour-blind readers can tell apart. Lines also differ in their markers and
// dashes.
#pragma once

#include <string>
#include <vector>

#include "app/experiment/experiment_speedup.h"

namespace antichain {

// Files are named relative to the results folder. "" means that a picture could not be drawn.
struct ModelFigures {
  std::string model;
  std::string speedup;   // against ranks, one line per method
  std::string stages;    // bars: every rank's busy time, by method, on the most ranks
  std::string timeline;  // of antichain on the most ranks
  std::string graph;     // the model, coloured by stage, on the most ranks
  std::string loss;      // against steps, where measured
};
struct StudyFigures {
  std::vector<std::string>
      overviews;  // speedup of every model on the most ranks: straight, with replicas; "": none
  std::vector<ModelFigures> models;
  std::vector<std::string> missing;  // why pictures are missing: a sentence each
};

StudyFigures draw_figures(const SpeedupOptions&, const ResultsFolder&, const std::vector<Cell>&);

}  // namespace antichain
