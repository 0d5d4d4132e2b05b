// calls.js PROTO HOST:PORT [MODEL]: calls a server by gRPC for JavaScript and says what is not as it should be.
//
// Without MODEL the server is the one of the tests (try_server.cpp), and every call is checked. With MODEL it is
// any server: the model's own metadata say what is sent (zeros), and what comes back must fit them.
// A token is taken from the variable LIMBER_TOKEN; LIMBER_CA is the file of the authority that signed the server's
// certificate. LIMBER_REFUSED: the server must refuse all that is asked.
'use strict';
const assert = require('assert');
const fs = require('fs');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [proto, address, model] = process.argv.slice(2);
const definition = loader.loadSync(proto, {keepCase: true, longs: Number, enums: String, defaults: true, oneofs: true});
const Service = grpc.loadPackageDefinition(definition).inference.GRPCInferenceService;
const authority = process.env.LIMBER_CA;
const client = authority
  ? new Service(address, grpc.credentials.createSsl(fs.readFileSync(authority)),
                {'grpc.ssl_target_name_override': 'localhost'})
  : new Service(address, grpc.credentials.createInsecure());

const SIZES = {BOOL: 1, UINT8: 1, INT8: 1, UINT16: 2, INT16: 2, FP16: 2, BF16: 2, UINT32: 4, INT32: 4, FP32: 4,
               UINT64: 8, INT64: 8, FP64: 8};

function metadata() {
  const made = new grpc.Metadata();
  if (process.env.LIMBER_TOKEN) made.set('authorization', 'Bearer ' + process.env.LIMBER_TOKEN);
  return made;
}

function call(method, request, sent = metadata()) {
  const options = {deadline: Date.now() + 30000};
  return new Promise((resolve, reject) => client[method](request, sent, options, (error, response) =>
    error ? reject(error) : resolve(response)));
}

async function refused(promise, code) {
  const error = await promise.then(() => null, (e) => e);
  assert(error, 'a call that should be refused was answered');
  assert.strictEqual(error.code, code, error.message);
  return error;
}

function floats(model, values) {
  const raw = Buffer.from(new Float32Array(values).buffer);
  return {model_name: model, id: 'js', inputs: [{name: 'image', datatype: 'FP32', shape: [1, values.length]}],
          raw_input_contents: [raw]};
}

async function checkTestServer() {
  assert.strictEqual((await call('ServerLive', {})).live, true);
  assert.strictEqual((await call('ServerReady', {})).ready, true);
  assert.strictEqual((await call('ModelReady', {name: 'echo'})).ready, true);
  assert.strictEqual((await call('ModelReady', {name: 'nothing'})).ready, false);
  assert.deepStrictEqual((await call('ServerMetadata', {})).extensions, ['model_repository']);
  const described = await call('ModelMetadata', {name: 'images'});
  assert.deepStrictEqual(described.inputs[0].shape, [-1, 3, 8, 8]);
  assert.strictEqual((await call('RepositoryIndex', {})).models.length, 2);
  await call('RepositoryModelLoad', {model_name: 'a'});
  await call('RepositoryModelUnload', {model_name: 'a'});

  const answer = await call('ModelInfer', floats('echo', [1, 2, 3.5]));
  assert.strictEqual(answer.id, 'js');
  assert.deepStrictEqual(answer.outputs[0].shape, [1, 3]);
  assert.strictEqual(answer.outputs[0].datatype, 'FP32');
  assert.strictEqual(answer.raw_output_contents[0].readFloatLE(8), 3.5);
  assert.strictEqual(answer.parameters.variant.string_param, 'original');

  const typed = {model_name: 'echo', inputs: [{name: 'x', datatype: 'INT64', shape: [2],
                                               contents: {int64_contents: [-1, 7]}}]};
  const echoed = (await call('ModelInfer', typed)).raw_output_contents[0];
  assert.deepStrictEqual([echoed.readBigInt64LE(0), echoed.readBigInt64LE(8)], [-1n, 7n]);
  const images = {model_name: 'images', inputs: [{name: 'image', datatype: 'BYTES', shape: [1],
                                                  contents: {bytes_contents: [Buffer.from('abc')]}}]};
  assert.strictEqual((await call('ModelInfer', images)).raw_output_contents[0].readBigInt64LE(0), 3n);

  const wrong = floats('echo', [1]);
  wrong.inputs[0].shape = [2];
  const malformed = await refused(call('ModelInfer', wrong), grpc.status.INVALID_ARGUMENT);
  assert.match(malformed.details, /raw_input_contents of 4 bytes; FP32 of shape \[2\] has 8/);
  await refused(call('ModelInfer', floats('nothing', [1])), grpc.status.NOT_FOUND);
  const full = await refused(call('ModelInfer', floats('refuse', [1])), grpc.status.RESOURCE_EXHAUSTED);
  assert.deepStrictEqual(full.metadata.get('retry-after'), ['0.25']);
  if (process.env.LIMBER_TOKEN) {
    await refused(call('ServerMetadata', {}, new grpc.Metadata()), grpc.status.UNAUTHENTICATED);
  }
  await checkStream();
}

async function checkStream() {
  const stream = client.ModelStreamInfer(metadata(), {deadline: Date.now() + 30000});
  const answers = [];
  const ended = new Promise((resolve, reject) => stream.on('end', resolve).on('error', reject));
  stream.on('data', (answer) => answers.push(answer));
  for (const name of ['echo', 'nothing', 'echo']) stream.write(floats(name, [4]));
  stream.end();
  await ended;
  assert.deepStrictEqual(answers.map((answer) => answer.error_message !== ''), [false, true, false]);
  assert.strictEqual(answers[2].infer_response.raw_output_contents[0].readFloatLE(0), 4);
}

async function checkModel() {
  assert.strictEqual((await call('ServerLive', {})).live, true);
  assert.strictEqual((await call('ModelReady', {name: model})).ready, true);
  const described = await call('ModelMetadata', {name: model});
  const request = {model_name: model, id: 'js', inputs: [], raw_input_contents: []};
  for (const {name, datatype, shape} of described.inputs) {
    const closed = shape.map((d) => d < 0 ? 1 : d);
    const elements = closed.reduce((a, b) => a * b, 1);
    request.inputs.push({name, datatype, shape: closed});
    request.raw_input_contents.push(Buffer.alloc(elements * SIZES[datatype]));
  }
  const answer = await call('ModelInfer', request);
  assert.strictEqual(answer.id, 'js');
  assert.strictEqual(answer.outputs.length, described.outputs.length);
  answer.outputs.forEach((output, i) => {
    const elements = output.shape.reduce((a, b) => a * b, 1);
    assert.strictEqual(answer.raw_output_contents[i].length, elements * SIZES[output.datatype]);
    assert.strictEqual(output.datatype, described.outputs[i].datatype);
  });
}

async function checkRefused() {
  for (const [method, request] of [['ServerLive', {}], ['ServerMetadata', {}], ['ModelMetadata', {name: model}],
                                   ['ModelInfer', {model_name: model}], ['RepositoryModelUnload', {model_name: model}]]) {
    await refused(call(method, request), grpc.status.UNAUTHENTICATED);
  }
}

const check = process.env.LIMBER_REFUSED ? checkRefused : model ? checkModel : checkTestServer;
check().then(
  () => { console.log(`gRPC for JavaScript against ${address}: ok`); client.close(); },
  (error) => { console.error(error); process.exit(1); });
