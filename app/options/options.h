// This file declares the options that several subcommands share, each once, so that a name means the same
// everywhere.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/option_row.h"
#include "models/model.h"
#include "pipeline/schedule/policy.h"

namespace antichain {

constexpr int default_microbatches = 8;  // of a step, for every command

// A GivenGraph is the network of --graph. Without that option both are empty.
struct GivenGraph {
  std::string path;  // the file or folder that it comes from
  std::shared_ptr<const GraphFile> file = {};

  bool given() const { return file != nullptr; }
  // Returns the network as a model, or else the known one of this name.
  NamedModel or_known(const std::string& model) const { return file ? model_of(file) : known_model(model); }
};

struct NetworkOptions {            // which network, and how it is fed
  std::string model = "resnet20";  // its name, also where it comes from --graph
  GivenGraph graph;
  int batch = 0;  // 0, until settled: the model's recipe's
  int microbatches = default_microbatches;
  double label_smoothing = 0;                       // part of the network: its last node depends on it
  bool soft_labels = false;                         // shares of all classes, as mixed images have them
  std::string form = "cifar";                       // or "imagenet"
  double aux = 0;                                   // weight of an auxiliary loss, where the model has one
  std::optional<double> dropout, stochastic_depth;  // empty: as is usual for the model
  std::vector<std::string> freeze;                  // patterns of names: what is not trained
  int image = 0;                                    // H = W in pixels; 0: the form's usual, or the data set's
  int classes = 0;                                  // the same
  int sequence = 0, vocabulary = 0;                 // of tokens; 0: the model's usual, or the data set's
  bool packed = false;                              // the data set's samples have several documents
  std::string precision = "float32";

  // Returns how many classes a loss tells apart: tokens, where the network reads those.
  int outputs() const { return vocabulary != 0 ? vocabulary : classes; }
  int microbatch() const;  // samples; Error when the batch can't be cut evenly
  NamedModel chosen() const { return graph.or_known(model); }
  ModelOptions model_options(int microbatch) const;
  Graph made(int microbatch) const { return make_model(chosen(), model_options(microbatch)); }
};

struct MachineOptions {  // where it runs
  std::string command;   // what runs, "train"
  int local = 0;         // ranks as threads of this process; 0: as mpirun started us
  std::string device = "cpu";
  std::string why_cpu;                 // where "auto" found no GPU
  std::string cpu_does = "computing";  // what the CPU does instead, for that message
  std::string transport = "auto";      // of tensors between ranks: pipeline/transport/choose_transport.h
  int threads = 1;                     // per rank; with 1 the bits do not depend on how ranks share a machine
  std::string cpu_isa = "auto";        // the most that the cpu engine may use: layers/cpu/cpu_isa.h
  std::string weight_gradients = "rounded";  // of bf16 on a GPU: layers/cuda/convolution.h
  double watchdog_s = 120;
};

struct ScheduleOptions {
  std::string schedule{Policy::one_f_one_b.name};  // a policy's name or a file
  std::string predict = "none";                    // how an asynchronous one predicts its weights
};

CLI::Option* add_model_name_option(CLI::App&, std::string& model);
CLI::Option* add_model_option(CLI::App&, NetworkOptions&);  // and --graph
// Adds --graph, which stands in place of `model_option` unless that is nullptr. The file is read as soon as
// the option is; `model` is then the name of its network, and `classes`, if it is 0, its number of classes.
CLI::Option* add_graph_option(CLI::App&, CLI::Option* model_option, GivenGraph&, std::string& model,
                              int& classes);
// Adds --form, for NetworkOptions or for a weight file's network.
void add_form_option(CLI::App&, std::string& form);
void add_aux_option(CLI::App&, double& aux);
CLI::Option* add_freeze_option(CLI::App&, std::vector<std::string>& patterns);
// Add --classes, of a network that is not from a graph, and --label-smoothing.
void add_classes_option(CLI::App&, int& classes, const std::string& usual);
void add_label_smoothing_option(CLI::App&, double& share);
// Adds --sequence and --vocabulary.
void add_token_options(CLI::App&, NetworkOptions&);
void add_network_options(CLI::App&, NetworkOptions&);
void settle_batch(NetworkOptions&);  // once all options are read
void add_microbatches_option(CLI::App&, int& microbatches, const std::string& group);
CLI::Option* add_device_option(CLI::App&, MachineOptions&);
// Says on stderr, once per job, why --device auto found no GPU.
void say_why_cpu(const MachineOptions&);
void add_threads_option(CLI::App&, MachineOptions&, const std::string& whose = "");
// This option takes effect as soon as it is read, before oneDNN chooses its instruction set.
void add_cpu_isa_option(CLI::App&, MachineOptions&);
CLI::Option* add_precision_option(CLI::App&, std::string& precision);
// This option takes effect as soon as it is read, before a GPU's module plans its convolutions.
void add_weight_gradients_option(CLI::App&, MachineOptions&);
void add_machine_options(CLI::App&, MachineOptions&);
void add_watchdog_option(CLI::App&, MachineOptions&);
void add_transport_option(CLI::App&, MachineOptions&);
// Adds the options about ranks and the watchdog only, for commands that compute nothing.
void add_rank_options(CLI::App&, MachineOptions&);
// Adds --schedule, which it returns, and --predict.
CLI::Option* add_schedule_option(CLI::App&, ScheduleOptions&);
// Throws a usage Error where predictions are asked for of a schedule that has none to make.
void check(const ScheduleOptions&);
// Adds an option of the group Output that names a file to write: "--json", or "--results DIR".
CLI::Option* add_output_option(CLI::App&, const std::string& name, std::string& file,
                               const std::string& description);

CLI::Option* add_width_option(CLI::App&, int& width);

}  // namespace antichain
