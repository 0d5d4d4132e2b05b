// send_image.js PROTO HOST:PORT MODEL INPUT FILE: sends an image as it lies in a file and prints the first output.
'use strict';
const fs = require('fs');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [proto, address, model, input, file] = process.argv.slice(2);
const definition = loader.loadSync(proto, {keepCase: true, longs: Number});
const {GRPCInferenceService} = grpc.loadPackageDefinition(definition).inference;
const client = new GRPCInferenceService(address, grpc.credentials.createInsecure());

const metadata = new grpc.Metadata();
if (process.env.LIMBER_TOKEN) metadata.set('authorization', 'Bearer ' + process.env.LIMBER_TOKEN);
const request = {
  model_name: model,
  inputs: [{name: input, datatype: 'BYTES', shape: [1], contents: {bytes_contents: [fs.readFileSync(file)]}}],
};
client.ModelInfer(request, metadata, {deadline: Date.now() + 5000}, (error, answer) => {
  if (error) {
    console.error(`${grpc.status[error.code]}: ${error.details}`);
    process.exit(1);
  }
  console.log(answer.outputs[0].name, answer.outputs[0].datatype, answer.outputs[0].shape);
  console.log(answer.raw_output_contents[0]);
  client.close();
});
