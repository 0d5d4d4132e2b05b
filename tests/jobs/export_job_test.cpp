#include "jobs/export_job.h"

#include <cmath>

#include "jobs/prune.h"
#include "tests/jobs/tiny.h"
#include "variant/elastic_model.h"

namespace limber {
namespace {

double operations_of(const Model& model) { return cost_of(model.graph)->flops; }

class ExportJobTest : public ::testing::Test {
 protected:
  Folder folder_;
  ExportJobOptions options_ = [this] {
    ExportJobOptions options;
    options.model = test::write_tiny(folder_);
    options.output = folder_ / "small.onnx";
    return options;
  }();
};

TEST_F(ExportJobTest, AShareOfTheOperationsIsNotExceededAndNearlyReached) {
  const auto whole = import_onnx(options_.model);
  ASSERT_TRUE(whole.ok());
  for (const double share : {0.3, 0.6}) {
    options_.operations = share;
    ASSERT_TRUE(run_export(options_).ok());
    const auto small = import_onnx(options_.output);
    ASSERT_TRUE(small.ok()) << small.status().message();
    const double takes = operations_of(*small) / operations_of(*whole);
    EXPECT_LE(takes, share);
    EXPECT_GT(takes, share / 2);  // a channel of a tiny network is a large step
    EXPECT_EQ(small->graph.type(small->graph.outputs()[0].value).to_string(),
              whole->graph.type(whole->graph.outputs()[0].value).to_string());
  }
}

TEST_F(ExportJobTest, AllOperationsAreTheModelItself) {
  const auto whole = import_onnx(options_.model);
  ASSERT_TRUE(whole.ok());
  const auto same = prune_to(*whole, 1);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(hash(same->graph), hash(whole->graph));
}

TEST_F(ExportJobTest, SharesThatCannotBeAreRefused) {
  for (const double share : {-0.1, 1.5, std::nan("")}) {
    options_.operations = share;
    EXPECT_EQ(run_export(options_).status().code(), Code::kInvalidArgument) << share;
  }
  options_.operations = 1e-6;
  const Status status = run_export(options_).status();
  EXPECT_TRUE(test::contains(status.message(), "one channel of each layer takes")) << status.message();
}

}  // namespace
}  // namespace limber
