// A fuzz target: a property over random inputs, and what it needs while it runs. The same targets are run by hand
// for millions of inputs and, a bounded share of each, by `bun test`.

import fc from 'fast-check'

export interface FuzzTarget {
  readonly name: string
  /** Inputs of the share that `npm test` runs; slow targets have fewer. */
  readonly shareInputs: number
  open(): OpenTarget | Promise<OpenTarget>
}

export interface OpenTarget {
  /** Throws on a violation. */
  readonly property: fc.IRawProperty<unknown>
  /** Inputs that are always run first: the corpus, as it is. */
  readonly examples: readonly unknown[]
  close?(): Promise<void>
}

export interface FuzzOutcome {
  readonly inputs: number
  /** How to get the same again, and what was wrong; undefined = no violation. */
  readonly violation: string | undefined
}

/** So many at once: enough that starting a batch costs nothing, few enough to tell how far it is. */
const batchInputs = 5_000

/** Runs batch after batch, each with the next seed, until all inputs are done or one violates. */
export async function fuzz(
  target: FuzzTarget,
  inputs: number,
  seed: number,
  onProgress: (done: number) => void = () => {},
): Promise<FuzzOutcome> {
  const opened = await target.open()
  const prototypes = prototypeNames()
  try {
    for (let done = 0, batch = 0; done < inputs; batch++) {
      const numRuns = Math.min(batchInputs, inputs - done)
      const examples = batch === 0 ? opened.examples : []
      const details = await fc.check(opened.property, {
        numRuns: Math.max(numRuns, examples.length),
        seed: seed + batch,
        examples: [...examples],
      })
      done += details.numRuns
      if (details.failed) return { inputs: done, violation: describe(target, seed + batch, details) }
      if (prototypeNames() !== prototypes) {
        return { inputs: done, violation: `${target.name}, seed ${seed + batch}: a prototype was changed` }
      }
      onProgress(done)
    }
    return { inputs, violation: undefined }
  } finally {
    await opened.close?.()
  }
}

/** Every name on the prototypes that hostile input reaches for, and whether a fresh object has more than it should. */
function prototypeNames(): string {
  const prototypes = [Object.prototype, Array.prototype, Function.prototype, String.prototype, Map.prototype]
  return JSON.stringify(prototypes.map((prototype) => Object.getOwnPropertyNames(prototype)))
}

function describe(target: FuzzTarget, seed: number, details: fc.RunDetails<unknown>): string {
  const { counterexample, errorInstance, counterexamplePath } = details
  const input = (counterexample as readonly unknown[]).map(shown).join('\n       ')
  const error = errorInstance instanceof Error ? (errorInstance.stack ?? errorInstance.message) : String(errorInstance)
  return [
    `${target.name}: violation at seed ${seed}, path ${counterexamplePath}`,
    `again: bun run test/fuzz/fuzz.ts --target ${target.name} --seed ${seed} --inputs ${batchInputs}`,
    `input: ${input}`,
    error.slice(0, 2000),
  ].join('\n')
}

/** Bytes in a form that `base64 -d` turns into a file of the corpus. */
function shown(value: unknown): string {
  if (!(value instanceof Uint8Array)) return fc.stringify(value).slice(0, 2000)
  return `${JSON.stringify(Buffer.from(value).toString().slice(0, 500))}\n       base64: ${Buffer.from(value).toString('base64')}`
}

/** For violations: says what was expected, with as much of the input as a terminal can bear. */
export function insist(holds: boolean, what: string): void {
  if (!holds) throw new Error(what)
}
