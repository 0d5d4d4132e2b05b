// ONNX Runtime as a worker of bench/infer.py (protocol: bench/README.md).
// usage: NODE_PATH=build/peers/node_modules node ort_worker.js MODEL THREADS
'use strict';

const path = require('path');
const {ort, readNpy, writeNpy, sessionOptions, version, serve} = require('./ort.js');

const model = process.argv[2];
const threads = Number(process.argv[3]);
if (!model || !Number.isInteger(threads) || threads < 1) {
  process.stderr.write('usage: ort_worker.js MODEL THREADS\n');
  process.exit(2);
}

// Opens the model and returns {inputs, outputs, run, call}: run(feeds, fetches) computes synchronously.
// The package's public run() defers each call by a turn of Node's event loop, some 30 us that are not ONNX
// Runtime's; the native binding below it is called directly where this version has it.
async function open() {
  const options = {...sessionOptions(threads), freeDimensionOverrides: {N: 1}};
  const session = await ort.InferenceSession.create(model, options);
  const names = {inputs: session.inputNames, outputs: session.outputNames, metadata: session.inputMetadata};
  try {
    const {binding} = require(path.join(path.dirname(require.resolve('onnxruntime-node')), 'binding.js'));
    const native = new binding.InferenceSession();
    native.loadModel(model, options);
    await session.release();
    return {...names, run: (feeds, fetches) => native.run(feeds, fetches, {}), call: 'native binding'};
  } catch (error) {
    return {...names, run: (feeds, fetches) => session.run(feeds, fetches), call: 'InferenceSession.run'};
  }
}

async function main() {
  const session = await open();
  const [input, output] = [session.inputs[0], session.outputs[0]];
  const dims = session.metadata[0].shape.map((dim) => (typeof dim === 'number' && dim > 0 ? dim : 1));
  const size = dims.reduce((a, b) => a * b, 1);
  const pattern = Float32Array.from({length: size}, (_, i) => Math.sin(i * 0.7));
  let feeds = {[input]: new ort.Tensor('float32', pattern, dims)};
  const results = await session.run(feeds, Object.fromEntries(session.outputs.map((name) => [name, null])));
  // Output tensors are allocated once and written again by every run, as the input is.
  const fetches = {};
  for (const name of session.outputs) {
    const {type, data, dims: shape} = results[name];
    fetches[name] = new ort.Tensor(type, data.slice(), shape);
  }

  async function run(count) {
    const times = [];
    for (let i = 0; i < count; i++) {
      const start = process.hrtime.bigint();
      const pending = session.run(feeds, fetches);
      if (pending instanceof Promise) await pending;
      times.push(Number(process.hrtime.bigint() - start) / 1e6);
    }
    return times.join(' ');
  }

  process.stdout.write('ready\n');
  await serve(async (line) => {
    const [command, ...words] = line.split(' ');
    if (command === 'run') return run(Number(words[0]));
    if (command === 'info') return JSON.stringify({version: version(), call: session.call});
    if (command === 'check') {
      feeds = {[input]: readNpy(words[0])};
      await run(1);
      writeNpy(words[1], fetches[output]);
      return 'done';
    }
    throw new Error(`unknown command '${line}'`);
  });
}

main().catch((error) => {
  process.stderr.write(`${error.stack || error}\n`);
  process.exit(1);
});
