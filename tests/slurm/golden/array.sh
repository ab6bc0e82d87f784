#!/bin/bash

# Parameters
#SBATCH --account=nlp
#SBATCH --array=0-4%2
#SBATCH --constraint='a100|h100'
#SBATCH --cpus-per-task=16
#SBATCH --dependency=afterok:1
#SBATCH --error=JOBS/_slurm/%A_%a_0_log.err
#SBATCH --exclusive
#SBATCH --gpus-per-node=1
#SBATCH --job-name=harness
#SBATCH --kill-on-invalid-dep=yes
#SBATCH --mail-user='a b@c.d'
#SBATCH --nodes=1
#SBATCH --open-mode=append
#SBATCH --output=JOBS/_slurm/%A_%a_0_log.out
#SBATCH --partition=gpu
#SBATCH --qos=long
#SBATCH --requeue
#SBATCH --signal=USR2@100
#SBATCH --time=5
#SBATCH --wckey=submitit

# setup
module load cuda
export HF_HUB_OFFLINE=1

# command
export SUBMITIT_EXECUTOR=slurm
srun --unbuffered --output JOBS/_slurm/%A_%a_%t_log.out --error JOBS/_slurm/%A_%a_%t_log.err --cpus-per-task=16 PYTHON -u -m submitit.core._submit JOBS/_slurm
