// Starts the fake upstream that all contenders call.

import { join } from 'node:path'
import { type Launched, launch } from './launch.ts'

export async function startUpstream(folder: string): Promise<Launched & { readonly url: string }> {
  const program = join(import.meta.dir, '..', 'upstream.ts')
  const launched = await launch({ name: 'upstream', folder, command: [process.execPath, '--no-install', program] })
  if ('failed' in launched) throw new Error(`the fake upstream ${launched.failed}`)
  return { ...launched, url: `http://127.0.0.1:${launched.port}` }
}
