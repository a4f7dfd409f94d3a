// The gateways that can be attacked, by the name that the command line takes.

import { startAny } from './any.js'
import { startBifrost } from './bifrost.js'
import { startLitellm } from './litellm.js'
import { startNewApi } from './new-api.js'
import { startTollgate, variants } from './tollgate.js'

/** @type {Record<string, import('../gateway.js').StartGateway>} */
export const gateways = {
  ...Object.fromEntries(
    Object.entries(variants).map(([name, variant]) => [
      name,
      (options) => startTollgate({ ...variant, name }, options),
    ]),
  ),
  litellm: startLitellm,
  bifrost: startBifrost,
  'new-api': startNewApi,
  any: startAny,
}

/** Whether a gateway can be started under another clock. @param {string} name */
export function hasClock(name) {
  return name in variants
}
