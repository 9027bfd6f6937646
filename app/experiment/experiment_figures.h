// The pictures of a speedup study, by gnuplot and Graphviz, as SVG files. Colours are those of the plan's
// graph, which stay apart for the colour-blind; lines differ in their marks and dashes, too.
#pragma once

#include <string>
#include <vector>

#include "app/experiment/experiment_speedup.h"

namespace antichain {

// Files are named relative to the results folder; a picture that could not be drawn is "".
struct ModelFigures {
  std::string model;
  std::string speedup;   // against ranks, a line a method
  std::string stages;    // bars: every rank's busy time, by method, on the most ranks
  std::string timeline;  // of antichain on the most ranks
  std::string graph;     // the model, coloured by stage, likewise
  std::string loss;      // against steps, where it was measured
};
struct StudyFigures {
  std::vector<std::string>
      overviews;  // speedup of every model on the most ranks: straight, with replicas; "": none
  std::vector<ModelFigures> models;
  std::vector<std::string> missing;  // why pictures are not there: a sentence each
};

StudyFigures draw_figures(const SpeedupOptions&, const ResultsFolder&, const std::vector<Cell>&);

}  // namespace antichain
