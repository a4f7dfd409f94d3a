// What the attacks need of a gateway. An adapter implements as much of it as the gateway can do; an attack that needs more is
// not run, and the report says so.

/**
 * A caller's key whose spending is limited.
 *
 * @typedef {object} Key
 * @property {string} id
 * @property {Record<string, string>} headers
 */

/**
 * @typedef {object} Gateway
 * @property {string} name as in the report
 * @property {string} version
 * @property {string} setting how it is configured, in a sentence
 * @property {string} model the name under which it serves the provider's model
 * @property {() => string} url the address of the next call: `…/v1/chat/completions`
 * @property {(amount: string, window?: 'day' | 'month') => Promise<Key>} createKey a key that may spend so many dollars
 * @property {(key: Key) => Promise<bigint>} spent what the gateway says was spent, in nano-dollars
 * @property {number} settleMs for how long the amount must not change before it counts
 * @property {() => Promise<void>} stop
 * @property {() => Promise<void>} [kill] kills a process of it, as a crash does; others may go on
 * @property {() => Promise<void>} [terminate] asks a process of it to end
 * @property {() => Promise<void>} [restart] starts what was killed or terminated
 * @property {(key: Key, amount: string) => Promise<void>} [limit] changes the limit of a key
 * @property {(prices: { input: string, output: string }) => Promise<void>} [price] changes the prices
 * @property {import('./programs.js').Program} [database]
 * @property {import('./programs.js').Program} [cache]
 * @property {boolean} [isOneCallPerKey] an idempotency key is documented
 */

/**
 * @typedef {object} StartOptions
 * @property {string} upstream the provider's address, without `/v1`
 * @property {string} folder an empty folder
 * @property {Record<string, string | undefined>} options of the command line
 * @property {string | undefined} clock begin at this time, `2026-01-01 23:59:50`; the adapter starts the gateway under
 *   `faketime` (see `clocked`)
 */

/** @typedef {(options: StartOptions) => Promise<Gateway>} StartGateway */

/** The command under a clock that begins at this time. @param {string | undefined} clock @param {string[]} command */
export function clocked(clock, command) {
  return clock === undefined ? command : ['faketime', '-f', `@${clock}`, ...command]
}
