// The console's script.

import { ConsolePage } from '../console/console-page.tsx'
import { DevicePage } from '../console/device-page.tsx'
import { SignInPage } from '../console/sign-in-page.tsx'
import { hydratePage } from './hydrate-page.tsx'

hydratePage({ 'sign-in': SignInPage, device: DevicePage, console: ConsolePage })
