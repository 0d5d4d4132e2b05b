// Teaching new blocks to do what the blocks they stand for do.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "train/training_session.h"
#include "variant/elastic_model.h"

namespace limber {

// The model as it was, run as a whole: what each of its blocks gives.
class Teacher {
 public:
  static Result<std::unique_ptr<Teacher>> create(const ElasticModel& model,
                                                 const std::vector<std::shared_ptr<Backend>>& backends,
                                                 int64_t batch, int threads);
  // REQUIRES: as many images as the batch
  Status run(const Tensor& images);
  // What block `block` reads, of the last run, until the next; with the number of blocks: the model's output.
  Tensor input_of(size_t block) const {
    return block == 0 ? session_->input(0) : session_->output(block - 1);
  }

 private:
  explicit Teacher(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  std::unique_ptr<Session> session_;
};

struct DistillOptions {
  int64_t batch = 32;
  int threads = 1;
  OptimizerOptions optimizer{.kind = OptimizerKind::kAdamW};
  std::vector<std::vector<bool>> only;  // by block and alternative: taught and judged; empty: all are
};

// Trains the parameters that alternatives have of their own (not the model's, which a block may share) to
// give what the original blocks give on the same input: every batch runs through the model once and then
// through each alternative alone. No labels are needed, and blocks do not wait for each other. Use from one
// thread.
class Distiller {
 public:
  // `model` must outlive it.
  static Result<std::unique_ptr<Distiller>> create(ElasticModel& model,
                                                   const std::vector<std::shared_ptr<Backend>>& backends,
                                                   const DistillOptions& options);
  // Every alternative with parameters of its own takes a step. Returns the mean of their errors before it.
  Result<double> step(const Tensor& images, double rate);
  // Sets Alternative::error of every wanted alternative from these batches, as inference gives it.
  Status judge(std::span<const Tensor> batches);
  size_t students() const { return students_.size(); }  // alternatives that are trained

 private:
  struct Student {
    size_t block = 0, alternative = 0;
    std::unique_ptr<TrainingSession> training;
  };

  Distiller(ElasticModel& model, std::vector<std::shared_ptr<Backend>> backends,
            const DistillOptions& options)
      : model_(model), backends_(std::move(backends)), options_(options) {}
  bool wanted(size_t block, size_t alternative) const;
  Status add_student(size_t block, size_t alternative);
  const Alternative& of(const Student& student) const {
    return model_.blocks[student.block].alternatives[student.alternative];
  }

  ElasticModel& model_;
  const std::vector<std::shared_ptr<Backend>> backends_;
  const DistillOptions options_;
  std::unique_ptr<Teacher> teacher_;
  std::shared_ptr<WorkArena> memory_;  // of one alternative at a time
  std::vector<Student> students_;
};

// Mean square of the difference by the variance of `want`. REQUIRES: f32, of one type
double relative_error(const Tensor& got, const Tensor& want);

}  // namespace limber
