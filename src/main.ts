// The entry point. Help, the version and usage errors are answered at once; the modules of the gateway and of commands are
// loaded only when they are needed, so that the program starts quickly.

import { readArguments } from './cli/arguments.ts'
import { Refusal } from './cli/refusal.ts'
import { systemClock } from './kernel/clock.ts'

async function run(args: readonly string[]): Promise<void> {
  const command = readArguments(args)
  switch (command.kind) {
    case 'print':
      process.stdout.write(command.text)
      return
    case 'management': {
      const { configInputs, runCommand } = await import('./cli/run.ts')
      const { processTerminal } = await import('./cli/terminal.ts')
      const inputs = configInputs()
      const terminal = processTerminal(inputs.env)
      process.exitCode = await runCommand(command.call, { inputs, terminal, clock: systemClock })
      return
    }
    case 'worker': {
      const { serve } = await import('./serve.ts')
      return await serve('shared port')
    }
    case 'serve': {
      const { start } = await import('./serve.ts')
      await start(command.options)
    }
  }
}

try {
  await run(process.argv.slice(2))
} catch (thrown) {
  if (!(thrown instanceof Refusal)) throw thrown
  const form = process.argv.includes('--json') ? 'json' : 'text'
  process.stderr.write(thrown[form]('tollgate --help'))
  process.exitCode = thrown.exit
}
