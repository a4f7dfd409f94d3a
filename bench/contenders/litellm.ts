// LiteLLM's proxy from PyPI with its defaults: one worker, no database, one master key. Installed by name into a virtual
// environment in the peers' folder.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Surface } from '../cells.ts'
import { UPSTREAM_MODEL } from '../upstream-replies.ts'
import type { Contender } from './contender.ts'
import { runInstaller } from './install.ts'
import { freePort, launch } from './launch.ts'

const PACKAGE = 'litellm[proxy]'
const KEY = 'sk-bench'
/** Importing it alone takes ten seconds and more. */
const START_MS_MAX = 90_000

export const litellm: Contender = {
  name: 'litellm',
  cells: 'all',
  byDefault: true,
  async start(setting) {
    const folder = join(setting.peersFolder, 'litellm')
    const program = join(folder, 'bin', 'litellm')
    if (!existsSync(program)) {
      if (!setting.installPeers) return { absent: 'not installed (--install-peers does it)' }
      const failed = install(folder)
      if (failed) return { absent: failed }
    }
    const configPath = join(setting.folder, 'litellm.yaml')
    writeFileSync(configPath, configuration(setting.upstreamUrl))
    const port = await freePort()
    const launched = await launch({
      name: 'litellm',
      folder: setting.folder,
      command: [program, '--config', configPath, '--host', '127.0.0.1', '--port', String(port)],
      environment: {
        // Its own copy of the price list; otherwise it asks the network at every start.
        LITELLM_LOCAL_MODEL_COST_MAP: 'True',
        LITELLM_LOG: 'ERROR',
      },
      port,
      startMsMax: START_MS_MAX,
    })
    if ('failed' in launched) return { absent: launched.failed }
    // Not measured on the Responses API.
    const call = (surface: Surface, provider: Surface) =>
      surface === 'responses'
        ? undefined
        : {
            model: surface === 'messages' && provider === 'chat' ? 'bench-chat-only' : `bench-${provider}`,
            headers: { authorization: `Bearer ${KEY}` },
          }
    return { version: `litellm ${versionIn(folder)}`, running: { ...launched, call } }
  },
}

// `openai/` would answer messages through the Responses API, which the fake upstream does not speak; any other compatible
// server, such as vLLM, is asked for chat completions.
function configuration(upstreamUrl: string): string {
  const entry = (name: string, provider: string, base: string) => ({
    model_name: name,
    litellm_params: { model: `${provider}/${UPSTREAM_MODEL}`, api_base: base, api_key: 'x' },
  })
  return JSON.stringify({
    model_list: [
      entry('bench-chat', 'openai', `${upstreamUrl}/v1`),
      entry('bench-chat-only', 'hosted_vllm', `${upstreamUrl}/v1`),
      entry('bench-messages', 'anthropic', upstreamUrl),
    ],
    general_settings: { master_key: KEY },
  })
}

function install(folder: string): string | undefined {
  const python = Bun.which('python3')
  if (!python) return 'needs python3'
  mkdirSync(folder, { recursive: true })
  return (
    runInstaller([python, '-m', 'venv', folder], folder) ??
    runInstaller([join(folder, 'bin', 'pip'), 'install', '--quiet', PACKAGE], folder)
  )
}

/** Read off the name of the installed package's folder: asking the program takes as long as starting it. */
function versionIn(folder: string): string {
  for (const release of readdirSync(join(folder, 'lib'))) {
    for (const name of readdirSync(join(folder, 'lib', release, 'site-packages'))) {
      const version = /^litellm-(.+)\.dist-info$/.exec(name)?.[1]
      if (version) return version
    }
  }
  return 'of unknown version'
}
