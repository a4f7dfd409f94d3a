// The entry point. Help, the version and usage errors are answered at once; the modules of the gateway and of commands are
// loaded only when they are needed, so that the program starts quickly.

import manifest from '../package.json' with { type: 'json' }
import { readArguments } from './cli/arguments.ts'
import { systemClock } from './kernel/clock.ts'

const command = readArguments(process.argv.slice(2))
switch (command.kind) {
  case 'help':
    process.stdout.write(command.text)
    break
  case 'version':
    process.stdout.write(`${manifest.version}\n`)
    break
  case 'unknown':
    process.stderr.write(`tollgate: ${command.message}\n`)
    process.exitCode = 2
    break
  case 'management': {
    const { configInputs, runCommand } = await import('./cli/run-command.ts')
    process.exitCode = await runCommand(command.call, { inputs: configInputs(), clock: systemClock })
    break
  }
  case 'worker': {
    const { serve } = await import('./serve.ts')
    await serve('shared port')
    break
  }
  case 'serve': {
    const { start } = await import('./serve.ts')
    await start(command.options)
  }
}
