// Every command. A new one is a definition in one of the files beside this one and a row here.

import type { CommandDefinition } from '../command.ts'
import { completionScript, shells } from '../completion.ts'
import { usageRefusal } from '../refusal.ts'
import { alertCommands } from './alerts.ts'
import { verifyCommands } from './audit.ts'
import { batchCommands } from './batches.ts'
import { billCommands } from './bills.ts'
import { configCommands } from './config.ts'
import { connectCommand } from './connect.ts'
import { databaseCommands } from './database.ts'
import { doctorCommand } from './doctor.ts'
import { groupCommands } from './groups.ts'
import { importCommands } from './import.ts'
import { catalogCommands } from './models.ts'
import { peopleCommands } from './people.ts'
import { planCommands } from './plans.ts'
import { providerCommands } from './providers.ts'
import { requestCommands } from './requests.ts'
import { secretCommands } from './secrets.ts'
import { signInCommands } from './sign-in.ts'
import { versionCommand } from './version.ts'
import { moneyCommands } from './wallet.ts'
import { tenantCommands } from './workspaces.ts'

const completionCommand: CommandDefinition = {
  words: ['completion'],
  isLocal: true,
  summary: 'prints a script that completes commands and options in a shell',
  positionals: [{ name: 'SHELL' }],
  examples: [
    'source <(tollgate completion bash)    # in ~/.bashrc',
    'source <(tollgate completion zsh)     # in ~/.zshrc',
    'tollgate completion fish > ~/.config/fish/completions/tollgate.fish',
  ],
  async run({ first, terminal }) {
    const shell = shells.find((each) => each === first)
    if (shell === undefined)
      throw usageRefusal(`SHELL must be one of ${shells.join(', ')}.`, 'tollgate completion bash')
    terminal.print(completionScript(shell, commands))
  },
}

export const commands: readonly CommandDefinition[] = [
  ...tenantCommands,
  ...groupCommands,
  ...peopleCommands,
  ...moneyCommands,
  ...planCommands,
  ...catalogCommands,
  ...requestCommands,
  ...batchCommands,
  ...billCommands,
  ...alertCommands,
  ...verifyCommands,
  doctorCommand,
  ...providerCommands,
  ...configCommands,
  ...secretCommands,
  ...databaseCommands,
  ...importCommands,
  ...signInCommands,
  connectCommand,
  completionCommand,
  versionCommand,
]
