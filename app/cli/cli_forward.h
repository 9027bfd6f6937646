// This file declares the parser's classes for the headers of the options. CLI11 takes seconds to compile, so
// only the files that declare options include it.
#pragma once

namespace CLI {
class App;
class Option;
class FormatterBase;
}  // namespace CLI
