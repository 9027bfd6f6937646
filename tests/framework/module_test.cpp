// A missing module must give a reason, not a crash.
#include "framework/module.h"

#include <gtest/gtest.h>

#include "framework/backend.h"
#include "framework/error.h"

namespace antichain {
namespace {

TEST(Module, AMissingOneIsAReasonThatSaysWhatToDo) {
  const std::string reason = load_module("nowhere");
  EXPECT_EQ(reason.find("libantichain_nowhere.so "), 0u) << reason;
  EXPECT_NE(reason.find("antichain_modules"), std::string::npos) << reason;
}

// Beside the library, and on the system's search path.
TEST(Module, OneThatLacksALibraryNamesIt) {
  for (const std::string name : {"needy", "strayed"})
    EXPECT_EQ(load_module(name).find("libantichain_" + name +
                                     ".so can't be loaded (libantichain_absent.so: cannot open"),
              0u)
        << load_module(name);
}

TEST(Module, TheTableOfEnginesKnowsADeviceByItsNameUpToAColon) {
  for (const EngineModule& module : engine_modules()) {
    EXPECT_EQ(module_of(module.device), &module);
    for (const std::string& device : module.other_devices) EXPECT_EQ(module_of(device), &module);
    EXPECT_EQ(module_of(module.device + "x"), nullptr);
    EXPECT_GE(module.present(), 0);
  }
  EXPECT_EQ(module_of("cpu"), nullptr);
  EXPECT_EQ(module_devices(), "cuda");
}

TEST(Module, CudaWithoutAModuleOrADeviceIsOneSentence) {
  try {
    backend("cuda");
    GTEST_SKIP() << "this machine has a CUDA device";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(std::string(error.what()).find("there is no device 'cuda': libantichain_cuda.so"), 0u)
        << error.what();
  }
}

}  // namespace
}  // namespace antichain
