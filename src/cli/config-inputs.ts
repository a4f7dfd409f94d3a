// What the configuration is read from: this process and the providers that are built in.

import { type ConfigInputs, readProcess } from '../config/config.ts'
import { builtInProviderIds, providerVariables } from '../providers/registry.ts'

export function configInputs(): ConfigInputs {
  return { ...readProcess(), providerVariables, builtInProviderIds }
}
