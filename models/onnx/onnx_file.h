// Reads and writes networks in ONNX files (github.com/onnx/onnx), of opset 11 to 21. Reading gives the
// GraphFile that a graph.json would give, and the weights; onnxruntime runs what is written.
// docs/bring-your-model.md says what is translated.
#pragma once

#include <string>

#include "framework/files/weights.h"
#include "models/graph_file.h"

namespace antichain {

constexpr const char* onnx_ending = ".onnx";
constexpr int64_t oldest_opset = 11, newest_opset = 21;
constexpr int64_t most_onnx_bytes = int64_t(2) << 30;  // the format's own limit; external data are beside it

bool is_onnx_file(const std::string& path);  // by its ending

struct OnnxNetwork {
  GraphFile graph;
  Weights weights;  // by the names of the network's parameters and buffers
};
// Throws Error when there is no such file, or it can't be translated: it names the node, its operator, and
// what is supported. The softmax cross-entropy of the first output is added as the loss. External data are
// read from files beside it.
OnnxNetwork read_onnx(const std::string& path);
// Reads the bytes of a file without external data. `origin` is what errors call it.
OnnxNetwork network_of_onnx(const std::string& bytes, const std::string& origin, const std::string& model);

// Returns the bytes of an ONNX file that computes the network's logits in evaluation, from images of any
// number of samples. Its initializers have the names of the weights, which must be all of the network's.
// Throws Error for an operator that ONNX does not have.
std::string to_onnx(const Graph&, const Weights&, const std::string& made_by);

// Makes known that the weights of a network may be in an ONNX file (framework/files/weights.h).
void register_onnx_weights();

}  // namespace antichain
