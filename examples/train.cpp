// Fine-tunes a classifier, twice as fast as training everything, and says how good it became.
//
//   train MODEL DATA OUTPUT [EPOCHS]
//
// MODEL is an ONNX file or builtin:resnet8; DATA a folder of images, one folder for each class, or
// synthetic:count=256. Ctrl-C stops after the step under way; the same command then goes on.
#include <limber/limber.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::atomic<bool> stop{false};

int fail(const limber::Error& error) {
  std::fprintf(stderr, "train: %s\n", error.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: train MODEL DATA OUTPUT [EPOCHS]\n");
    return 2;
  }
  std::signal(SIGINT, [](int) { stop = true; });

  limber::TrainSettings settings;
  settings.model = argv[1];
  settings.data = argv[2];
  settings.output = argv[3];
  settings.resume = true;  // from the start when nothing is there
  settings.epochs = argc > 4 ? std::atol(argv[4]) : 10;
  settings.speedup = 2;

  limber::TrainControl control;
  control.stop = &stop;
  control.on_note = [](limber::NoteLevel, std::string_view text) {
    std::fprintf(stderr, "note: %.*s\n", static_cast<int>(text.size()), text.data());
  };
  control.on_epoch = [](const limber::TrainedEpoch& epoch) {
    std::printf("epoch %lld: loss %.3f, %.1f s\n", static_cast<long long>(epoch.epoch), epoch.loss,
                epoch.seconds);
  };
  const auto trained = limber::train(settings, control);
  if (!trained) return fail(trained.error());
  if (trained->stopped) {
    std::printf("stopped after %lld steps\n", static_cast<long long>(trained->steps));
    return 1;
  }

  const auto judged = limber::evaluate({.model = settings.output, .data = settings.data});
  if (!judged) return fail(judged.error());
  std::printf("%.1f %% of %lld images right\n", 100 * judged->accuracy,
              static_cast<long long>(judged->images));
  return 0;
}
