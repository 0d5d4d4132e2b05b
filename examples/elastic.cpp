// Makes a classifier elastic, finds the best shape within a latency on this machine, runs it and exports it.
//
//   elastic MODEL DATA FOLDER OUTPUT.onnx [BUDGET_SECONDS [LATENCY_SHARE]]
//
// MODEL is an ONNX file or builtin:resnet8; DATA a folder of images or synthetic:count=256.
#include <limber/limber.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

int fail(const limber::Error& error) {
  std::fprintf(stderr, "elastic: %s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "usage: elastic MODEL DATA FOLDER OUTPUT.onnx [BUDGET_SECONDS [LATENCY_SHARE]]\n");
    return 2;
  }
  const std::string folder = argv[3];

  limber::ElastifySettings making;
  making.model = argv[1];
  making.data = argv[2];
  making.output = folder;
  making.budget_s = argc > 5 ? std::atof(argv[5]) : 600;
  const auto made = limber::elastify(making);
  if (!made) return fail(made.error());
  std::printf("%lld blocks, %lld alternatives\n", static_cast<long long>(made->blocks),
              static_cast<long long>(made->alternatives));

  limber::SearchSettings looking;
  looking.folder = folder;
  looking.data = argv[2];
  looking.latency_share = argc > 6 ? std::atof(argv[6]) : 0.8;
  looking.evaluations = 20;
  looking.images = 64;
  const auto found = limber::search(looking);
  if (!found) return fail(found.error());
  std::printf("best within %.3f ms: %.3f ms, %.1f %% right\n", 1e3 * found->limit_s,
              1e3 * found->best.latency_s, 100 * found->best.accuracy);

  // What a program does when it starts, or when its budget changes.
  const auto elastic = limber::Elastic::open(folder);
  if (!elastic) return fail(elastic.error());
  const auto chosen = elastic->choose({.latency_s = 2 * found->original.latency_s});
  if (!chosen) return fail(chosen.error());
  const auto model = elastic->model(chosen->variant);
  if (!model) return fail(model.error());
  auto session = model->compile();
  if (!session) return fail(session.error());
  if (const limber::Error error = session->run(); !error.ok()) return fail(error);
  if (const limber::Error error = model->save(argv[4]); !error.ok()) return fail(error);
  std::printf("chosen %s, saved as %s\n", chosen->variant.c_str(), argv[4]);
  return 0;
}
