#include "runtime/kernel.h"

namespace limber {
namespace {

using RunFn = std::function<void(const KernelIo&)>;

class BoundFunction : public BoundKernel {
 public:
  BoundFunction(const RunFn& fn, KernelIo io) : fn_(fn), io_(std::move(io)) {}
  void run() override { fn_(io_); }

 private:
  const RunFn& fn_;
  KernelIo io_;
};

class FunctionKernel : public Kernel {
 public:
  FunctionKernel(RunFn fn, size_t scratch) : fn_(std::move(fn)), scratch_(scratch) {}
  size_t scratch_bytes() const override { return scratch_; }
  Result<std::unique_ptr<BoundKernel>> bind(KernelIo io) const override {
    return std::unique_ptr<BoundKernel>(std::make_unique<BoundFunction>(fn_, std::move(io)));
  }

 private:
  RunFn fn_;
  size_t scratch_;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(RunFn run, size_t scratch_bytes) {
  return std::make_unique<FunctionKernel>(std::move(run), scratch_bytes);
}

}  // namespace limber
