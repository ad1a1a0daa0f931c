// Validates the objects of KEDA and of the Prometheus operator on standard input, a JSON array:
// `node operators.mjs FOLDER` with the packages in FOLDER/node_modules. Prints one line per fault.
import { pathToFileURL } from "node:url";
import path from "node:path";
import { text } from "node:stream/consumers";

const GROUPS = { "keda.sh/v1alpha1": "keda", "monitoring.coreos.com/v1": "prometheus-operator" };
const packages = path.join(path.resolve(process.argv[2]), "node_modules/@kubernetes-models");
let faults = 0;
const fault = (object, why) => {
  faults += 1;
  console.log(`${object.kind} ${object.metadata?.name}: ${why}`);
};

for (const object of JSON.parse(await text(process.stdin))) {
  const source = GROUPS[object.apiVersion];
  if (!source) { fault(object, `no schema of ${object.apiVersion} is known`); continue; }
  const file = path.join(packages, source, object.apiVersion, `${object.kind}.js`);
  const { [object.kind]: Model } = await import(pathToFileURL(file));
  try {
    new Model(object).validate();
  } catch (error) {
    fault(object, error.message);
  }
}
process.exit(faults ? 1 : 0);
