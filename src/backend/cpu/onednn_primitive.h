// How a oneDNN primitive becomes a Kernel; the same for every version of oneDNN.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/kernel.h"

namespace limber::onednn {

// oneDNN throws; nothing above this folder does.
template <typename F>
Status guarded(std::string_view what, F&& call) {
  try {
    std::forward<F>(call)();
    return {};
  } catch (const dnnl::error& e) {
    const Code code = e.status == dnnl_unimplemented   ? Code::kUnsupported
                      : e.status == dnnl_out_of_memory ? Code::kResourceExhausted
                                                       : Code::kInternal;
    return error(code, "oneDNN: {}: {}", what, e.message);
  }
}

struct PackedLayout;

// One argument of a primitive and where its pointer comes from.
struct Argument {
  int id;
  dnnl::memory::desc desc;
  enum From : uint8_t { kInput, kOutput, kScratch } from;
  int index = 0;
};

class BoundPrimitive : public BoundKernel {
 public:
  BoundPrimitive(const dnnl::primitive& primitive, const dnnl::engine& engine)
      : primitive_(primitive), stream_(engine) {}

  void add(int id, dnnl::memory memory) {
    memories_.push_back(std::move(memory));
    args_.push_back({id, memories_.back().get()});
  }

  void run() override {
    // The C call: the C++ one would build a map first.
    const auto status =
        dnnl_primitive_execute(primitive_.get(), stream_.get(), static_cast<int>(args_.size()), args_.data());
    LIMBER_ASSERT(status == dnnl_success);
  }

 private:
  const dnnl::primitive& primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> args_;
};

class PrimitiveKernel : public Kernel {
 public:
  // Keeps the `layouts` of its arguments known.
  PrimitiveKernel(dnnl::primitive primitive, dnnl::engine engine, std::vector<Argument> args,
                  std::vector<std::shared_ptr<const PackedLayout>> layouts)
      : primitive_(std::move(primitive)),
        engine_(std::move(engine)),
        args_(std::move(args)),
        layouts_(std::move(layouts)) {}

  size_t scratch_bytes() const override {
    for (const Argument& a : args_) {
      if (a.from == Argument::kScratch) return a.desc.get_size();
    }
    return 0;
  }

  Result<std::unique_ptr<BoundKernel>> bind(KernelIo io) const override {
    std::unique_ptr<BoundPrimitive> bound;
    LIMBER_TRY(guarded("bind", [&] {
      bound = std::make_unique<BoundPrimitive>(primitive_, engine_);
      for (const Argument& a : args_) {
        void* data = a.from == Argument::kInput ? const_cast<void*>(io.inputs[static_cast<size_t>(a.index)])
                     : a.from == Argument::kOutput ? io.outputs[static_cast<size_t>(a.index)]
                                                   : io.scratch;
        bound->add(a.id, dnnl::memory(a.desc, engine_, data));
      }
    }));
    return std::unique_ptr<BoundKernel>(std::move(bound));
  }

 private:
  dnnl::primitive primitive_;
  dnnl::engine engine_;
  std::vector<Argument> args_;
  std::vector<std::shared_ptr<const PackedLayout>> layouts_;
};

inline std::vector<Argument> with_scratch(std::vector<Argument> args, const dnnl::memory::desc& scratch) {
  if (scratch.get_size() > 0) args.push_back({DNNL_ARG_SCRATCHPAD, scratch, Argument::kScratch});
  return args;
}

}  // namespace limber::onednn
