// What the package says of itself.

import manifest from '../../package.json' with { type: 'json' }

export interface Manifest {
  readonly version: string
  /** The runtime it is pinned to; undefined where the package names none. */
  readonly bun: string | undefined
}

export function readManifest(): Manifest {
  return { version: manifest.version, bun: manifest.dependencies.bun }
}
